"""The lowest layer: invocables, resources and prompts are three shapes and stay three.

Data and Protocols only; no I/O, and nothing of ours is imported here. Tools and MCP are built on it, not the other way
round (capability-layer design).
"""

from .calls import DataReference, InvocableRequest, InvocableResult, Resume
from .content import (
    AudioPart,
    BlobPart,
    ContentPart,
    EmbeddedResource,
    ImagePart,
    ResourceLink,
    StructuredPart,
    TextPart,
)
from .context import CapabilityContext
from .errors import CapabilityError, ExecutionFailed, Fault, InvalidInput, Unavailable
from .events import Artifact, Event, Log, LogLevel, Progress, Status
from .model import Value
from .names import (
    CapabilityName,
    Json,
    JsonObject,
    MetadataMap,
    PromptId,
    ResourceId,
    SessionId,
    TurnId,
)
from .outcomes import (
    Answer,
    Completed,
    Denied,
    Failed,
    Outcome,
    Question,
    Suspended,
    Suspension,
    SuspensionKind,
)
from .providers import (
    CapabilityProvider,
    Completing,
    Connected,
    ConnectionStatus,
    Invocable,
    Page,
    PromptContents,
    PromptMessage,
    PromptProvider,
    ResourceContents,
    ResourceProvider,
    State,
    Subscribable,
    Templated,
)
from .specs import (
    Annotations,
    InvocableSpec,
    PromptArgument,
    PromptDescriptor,
    ResourceDescriptor,
    ResourceTemplate,
)
