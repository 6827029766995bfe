"""A2A as bytes and JSON: agent cards, dialects, answers, and what becomes of a task. No socket, clock or await."""

from .answers import (
    Artifact,
    ArtifactUpdate,
    Item,
    Message,
    StatusUpdate,
    Task,
    decode,
    read_item,
    read_rest_error,
    read_rpc,
    refused_by_status,
)
from .canonical import NotCanonical, canonical, signed_forms
from .cards import Card, CardFault, Dropped, Interface, Scheme, Skill, read_card, resolve_url, sanitize
from .conclusions import Asked, partial_of, question_of, reason_of, result_of
from .conversation import Conversation
from .dialects import Outgoing, Way, WireRequest, other_way, recalled, ways
from .errors import Misconduct, RefusalKind, Refused, Unreadable, WireError
from .fields import a_list, a_text, an_object
from .states import FINAL, UNKNOWN, WAITING, read_state

__all__ = [
    "FINAL",
    "UNKNOWN",
    "WAITING",
    "Artifact",
    "ArtifactUpdate",
    "Asked",
    "Card",
    "CardFault",
    "Conversation",
    "Dropped",
    "Interface",
    "Item",
    "Message",
    "Misconduct",
    "NotCanonical",
    "Outgoing",
    "RefusalKind",
    "Refused",
    "Scheme",
    "Skill",
    "StatusUpdate",
    "Task",
    "Unreadable",
    "Way",
    "WireError",
    "WireRequest",
    "a_list",
    "a_text",
    "an_object",
    "canonical",
    "decode",
    "other_way",
    "partial_of",
    "question_of",
    "read_card",
    "read_item",
    "read_rest_error",
    "read_rpc",
    "read_state",
    "reason_of",
    "recalled",
    "refused_by_status",
    "resolve_url",
    "result_of",
    "sanitize",
    "signed_forms",
    "ways",
]
