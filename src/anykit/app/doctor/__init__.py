"""What is wrong with a configuration and its sources, and how to mend it, without calling anything."""

from .examining import CHECKS, Examined, examine
from .finding import Case, Finding, Severity
from .wording import hidden_in_definition

__all__ = ["CHECKS", "Case", "Examined", "Finding", "Severity", "examine", "hidden_in_definition"]
