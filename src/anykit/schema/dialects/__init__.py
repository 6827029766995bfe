"""A tool's schema as model providers take it. Pure: a schema in; out a new one, and what it could not say."""

from .anthropic import for_anthropic_strict
from .gemini import for_gemini
from .losses import Conversion, Loss, NotStrict, Refusal
from .names import ANTHROPIC, GEMINI, refused_names
from .openai import for_openai_strict
from .plain import for_anthropic, for_openai, parameter_aliases

__all__ = [
    "ANTHROPIC",
    "GEMINI",
    "Conversion",
    "Loss",
    "NotStrict",
    "Refusal",
    "for_anthropic",
    "for_anthropic_strict",
    "for_gemini",
    "for_openai",
    "for_openai_strict",
    "parameter_aliases",
    "refused_names",
]
