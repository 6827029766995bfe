"""One request to an agent, as its answers come in: what state the task is in, and its result put together.

take(task)             all that is known, at this moment
take(status update)    the state is another
take(artifact update)  a result, or one more piece of it
take(message)          the whole answer, without a task
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from anykit.capabilities import Artifact as ArtifactEvent
from anykit.capabilities import BlobPart, ContentPart, Event, Status, StructuredPart, TextPart

from .answers import Artifact, ArtifactUpdate, Item, Message, StatusUpdate, Task
from .errors import Misconduct
from .states import FINAL, UNKNOWN, WAITING

MAX_SIZE = 16 * 1024 * 1024
"""Characters and bytes of all artifacts together."""
MAX_PIECES = 100_000
MAX_ARTIFACTS = 1000


@dataclass(slots=True)
class _Building:
    """An artifact that may grow."""

    name: str
    parts: list[ContentPart] = field(default_factory=list[ContentPart])
    left_out: list[str] = field(default_factory=list[str])


class Conversation:
    """What is known of one request. `asked_before` is the question that this request answers (`question_mark`)."""

    def __init__(self, *, message_id: str = "", task_id: str = "", asked_before: str = "") -> None:
        self.task_id = task_id
        self.context_id = ""
        self.state = UNKNOWN
        self.said: Message | None = None
        """What the newest status says."""
        self.timestamp = ""
        self.reply: Message | None = None
        """The answer, where it came as a message."""
        self.history: tuple[Message, ...] = ()
        self.begun = False
        """Whether the agent took the request."""
        self._message_id = message_id
        self._named = False
        self._asked_before = asked_before
        self._artifacts: dict[str, _Building] = {}
        self._size = 0
        self._pieces = 0
        self._told = ""

    @property
    def settled(self) -> bool:
        """Whether there is nothing to wait for: it is over, or it waits for us."""
        if self.reply is not None or self.state in FINAL:
            return True
        return self.state in WAITING and not self._is_old_question()

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """The results, in the order in which they began."""
        return tuple(
            Artifact(id, one.name, tuple(one.parts), tuple(one.left_out)) for id, one in self._artifacts.items()
        )

    @property
    def is_bare(self) -> bool:
        """Whether nothing but states was told: no result, and no word."""
        return self.reply is None and not self._artifacts and not (self.said and self.said.parts)

    @property
    def question_mark(self) -> str:
        """What tells this question from a later one; "" where the agent marks neither."""
        id = "" if self.said is None else self.said.id
        return f"{self.timestamp}|{id}" if self.timestamp or id else ""

    def say(self) -> None:
        """Something is about to be said to the agent; it may answer it with another task."""
        self.begun = self._named = False

    def believe(self) -> None:
        """Take a question that looks like the answered one for a new one from now on."""
        self._asked_before = ""

    def take(self, item: Item) -> list[Event]:
        """Take the next answer in; what its watchers should hear of it.

        Raises `Misconduct` where it is about another task, or too large.
        """
        if isinstance(item, Message):
            return self._take_message(item)
        self._same_task(item.id if isinstance(item, Task) else item.task_id)
        self.context_id = item.context_id or self.context_id
        self.begun = True
        match item:
            case Task():
                return self._take_task(item)
            case StatusUpdate():
                return self._take_status(item.state, item.message, item.timestamp)
            case ArtifactUpdate():
                return self._take_artifact(item)

    def _take_message(self, message: Message) -> list[Event]:
        if message.id and message.id == self._message_id:
            raise Misconduct("the agent answered with the message that it was sent")
        self.begun = True
        self.reply = message
        self.state = "completed"
        self.context_id = message.context_id or self.context_id
        self.task_id = self.task_id or message.task_id
        return []

    def _take_task(self, task: Task) -> list[Event]:
        if task.artifacts:
            self._artifacts.clear()
            self._size = 0
            for artifact in task.artifacts:
                self._build(artifact, append=artifact.id in self._artifacts)
        self.history = task.history or self.history
        return self._take_status(task.state, task.message, task.timestamp)

    def _take_status(self, state: str, message: Message | None, timestamp: str) -> list[Event]:
        self.state, self.timestamp = state, timestamp
        # A peer must not put our own words into the agent's mouth.
        self.said = None if message is not None and message.role == "user" else message
        if self.settled or self.said is None:
            return []
        text = joined_text(self.said.parts)
        if not text or text == self._told:
            return []
        self._told = text
        return [Status(text)]

    def _take_artifact(self, update: ArtifactUpdate) -> list[Event]:
        artifact = update.artifact
        self._build(artifact, append=update.append)
        if self.state == UNKNOWN:
            self.state = "working"
        name = self._artifacts[artifact.id].name or artifact.id
        last = len(artifact.parts) - 1
        return [
            ArtifactEvent(name, part, append=update.append or index > 0, last=update.last and index == last)
            for index, part in enumerate(artifact.parts)
        ]

    def _build(self, artifact: Artifact, *, append: bool) -> None:
        known = self._artifacts.get(artifact.id)
        if known is None:
            if len(self._artifacts) >= MAX_ARTIFACTS:
                raise Misconduct(f"the agent gives more than {MAX_ARTIFACTS} artifacts")
            known = self._artifacts[artifact.id] = _Building(artifact.name)
        elif not append:
            self._size -= sum(map(_size, known.parts))
            known.parts.clear()
            known.left_out.clear()
        known.name = known.name or artifact.name
        known.parts += artifact.parts
        known.left_out += artifact.left_out[:10]
        self._size += sum(map(_size, artifact.parts))
        self._pieces += len(artifact.parts)
        if self._size > MAX_SIZE or self._pieces > MAX_PIECES or len(known.left_out) > 1000:
            raise Misconduct(f"the agent's results are larger than {MAX_SIZE} bytes")

    def _same_task(self, id: str) -> None:
        if not id:
            return
        if self._named and id != self.task_id:
            raise Misconduct("the agent answered about another task")
        self.task_id, self._named = id, True

    def _is_old_question(self) -> bool:
        return bool(self._asked_before) and self.question_mark == self._asked_before


def joined_text(parts: Iterable[ContentPart]) -> str:
    """The texts of a message, one a line."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart) and part.text)


def _size(part: ContentPart) -> int:
    match part:
        case TextPart():
            return len(part.text)
        case BlobPart():
            return len(part.data or b"") + len(part.uri or "")
        case StructuredPart():
            return 64
        case _:
            return 64
