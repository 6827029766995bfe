"""A2A, the agent's side: every tool a skill, over JSON-RPC and HTTP+JSON, 1.0 and 0.3, without a language model.

card          the agent card (no SDK)
normaliser    ahead of the SDK: bodies, dialects, numbers     dialects    what callers really send
messages      what a message asks for     answers    what it answers     parts    what a result becomes
mounting      the mounts; the SDK is imported late, behind `application`:
application   the SDK put together     agent    its executor     talk    what is said of a task
tasks         its task store over our records     webhooks    push notifications
"""

from .card import About
from .limits import Limits
from .mounting import a2a_mounts

__all__ = ["About", "Limits", "a2a_mounts"]
