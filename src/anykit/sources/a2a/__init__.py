"""A2A agents as sources of tools: one tool a skill, in every dialect that agents really speak."""

from .agent import Agent, agent, configured_agent, is_enabled
from .client import AgentClient
from .discovery import Found
from .errors import CardError, Tried
from .source import A2ASource
from .tools import A2ATool, agent_tools

__all__ = [
    "A2ASource",
    "A2ATool",
    "Agent",
    "AgentClient",
    "CardError",
    "Found",
    "Tried",
    "agent",
    "agent_tools",
    "configured_agent",
    "is_enabled",
]
