"""A call that a server answers with questions (MCP 2026-07-28): what was asked, what is answered, what is left.

    call ──> input required ──> answered here (roots, a model), declined, or a question for the caller
      ^                                                                   │
      └───────── once more, with all answers and the server's state <─────┘

Between two rounds all of it is JSON in the suspension's `state`, so that a later process can go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from anykit.capabilities import Answer, ExecutionFailed, Json, JsonObject, Question, Suspension

from .questions import Declined, question_of, response_of

ROUNDS: Final = 10
"""How often one call may ask."""
VERSION: Final = 1


@dataclass
class Rounds:
    """One call's questions so far."""

    server: str
    state: str | None = None
    """The server's own, handed back as it is."""
    asked: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Params of the elicitations that have no answer, by the server's key, in order."""
    answers: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Responses so far, by key."""
    count: int = 0
    visits: bool = False
    """Whether these are addresses that a server of 2025-11-25 wants visited before it is called at all (-32042)."""

    @classmethod
    def resumed(cls, server: str, state: Json, answer: Answer) -> Rounds:
        """Go on from a suspension's `state` with the caller's answer.

        Raises `ExecutionFailed` where the state is none of ours, the answer does not fit, or what was asked is refused
        and the server could not go on without it.
        """
        kept = cast(JsonObject, state) if isinstance(state, dict) else {}
        if kept.get("v") != VERSION or not kept.get("asked"):
            raise ExecutionFailed(f"{server}: the call cannot be gone on with: its state is not known", code="expired")
        rounds = cls(
            server,
            state=kept.get("state"),
            asked=dict(kept["asked"]),
            answers=dict(kept.get("answers", {})),
            count=int(kept.get("count", 0)),
            visits=bool(kept.get("visits")),
        )
        key, params = next(iter(rounds.asked.items()))
        del rounds.asked[key]
        question = question_of(server, params)
        if isinstance(question, Declined):
            raise ExecutionFailed(question.reason, code="declined")
        if rounds.visits and not answer.ok:
            raise ExecutionFailed(f"{server}: what it asked for was refused", code="declined")
        rounds.answers[key] = response_of(question, answer)
        return rounds

    @property
    def responses(self) -> dict[str, JsonObject] | None:
        """What to send with the next request."""
        return None if self.visits or not self.answers else self.answers

    def required(self, requests: Mapping[str, JsonObject], state: str | None) -> list[tuple[str, JsonObject]]:
        """The server wants more: begin a round. Gives what is no question for a person, to be answered here.

        Raises `ExecutionFailed` where it asks for ever.
        """
        self.count += 1
        if self.count > ROUNDS:
            raise ExecutionFailed(f"{self.server} asked more than {ROUNDS} times", code="execution_failed")
        self.state = state
        self.answers = {}
        self.visits = False
        self.asked = {
            key: dict(request.get("params") or {})
            for key, request in requests.items()
            if request.get("method") == "elicitation/create"
        }
        return [(key, dict(request)) for key, request in requests.items() if key not in self.asked]

    def must_visit(self, elicitations: list[JsonObject]) -> None:
        """A server of 2025-11-25 refused the call until some addresses were visited."""
        self.count += 1
        if self.count > ROUNDS:
            raise ExecutionFailed(f"{self.server} asked more than {ROUNDS} times", code="execution_failed")
        self.state = None
        self.answers = {}
        self.visits = True
        self.asked = {str(index): {**one, "mode": "url"} for index, one in enumerate(elicitations[:ROUNDS])}

    def next_question(self, remarks: list[str]) -> Question | None:
        """The next question for a person; those that may not be asked are declined on the way, with a remark."""
        for key, params in list(self.asked.items()):
            question = question_of(self.server, params)
            if isinstance(question, Question):
                return question
            del self.asked[key]
            remarks.append(question.reason)
            if self.visits:
                raise ExecutionFailed(question.reason, code="declined")
            self.answers[key] = {"action": "decline"}
        return None

    def answered(self, question: Question, answer: Answer) -> None:
        """The question that came last was answered on the spot. Raises `ExecutionFailed` where the answer does not fit."""
        key = next(iter(self.asked))
        del self.asked[key]
        if self.visits and not answer.ok:
            raise ExecutionFailed(f"{self.server}: what it asked for was refused", code="declined")
        self.answers[key] = response_of(question, answer)

    def suspension(self, id: str, question: Question) -> Suspension:
        """The question as what the call is suspended with."""
        state: dict[str, Any] = {
            "v": VERSION,
            "state": self.state,
            "asked": self.asked,
            "answers": self.answers,
            "count": self.count,
            "visits": self.visits,
        }
        return Suspension(
            id=id,
            kind=question.kind,
            prompt=question.prompt,
            schema=question.schema,
            url=question.url,
            data={"source": self.server},
            state=state,
        )
