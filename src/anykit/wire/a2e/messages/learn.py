"""Learning: feedback, experience, refinement. The capability is called `learning` on the wire."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from .envelope import A2EMessage, Int, ListOf, Number, WireModel, new_id, now


class FeedbackPolarity(StrEnum):
    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"
    CORRECTIVE = "corrective"


class FeedbackDimension(StrEnum):
    CORRECTNESS = "correctness"
    HELPFULNESS = "helpfulness"
    SAFETY = "safety"
    TONE = "tone"
    PLAN_QUALITY = "plan_quality"


class FeedbackSource(StrEnum):
    HUMAN = "human"
    ENV = "env"
    SELF = "self"


class AdaptStrategy(StrEnum):
    PPO = "ppo"
    UCB1 = "ucb1"
    EPSILON_GREEDY = "epsilon_greedy"
    SOFTMAX = "softmax"
    CUSTOM = "custom"


class RatedTurn(WireModel):
    """The turn that a feedback is about."""

    prompt: str  # prompt that was given
    response: str  # answer that was rated
    model: str  # model or skill identity
    environment: Any = None  # context of the turn
    version: str | None = None  # version of that component


class Feedback(WireModel):
    """One judgement of one turn."""

    feedback_id: str = Field(default_factory=new_id)  # unique id of the signal
    correlation_id: str = ""  # caller's tracing tag for a turn
    session_id: str = ""  # session handed out at handshake
    rated_turn: RatedTurn | None  # the turn being judged
    polarity: FeedbackPolarity  # positive, negative, neutral, corrective
    score: Number = 0.0  # rating from -1 to 1
    dimension: FeedbackDimension = FeedbackDimension.HELPFULNESS  # quality axis being rated
    confidence: Number = 1.0  # weight of the rating
    comment: str = ""  # free-text remark
    correction: str = ""  # better answer; needed when corrective
    correction_span: ListOf[Any] | None = None  # character range being corrected
    source: FeedbackSource = FeedbackSource.HUMAN  # human, env or self
    annotator_id: str = ""  # who gave the rating
    ts: Number = Field(default_factory=now)  # send time, Unix seconds


class Experience(WireModel):
    """One transition."""

    experience_id: str = Field(default_factory=new_id)  # unique id of the tuple
    state: dict[str, Any] = Field(default_factory=dict[str, Any])  # context before acting
    action: dict[str, Any] = Field(default_factory=dict[str, Any])  # what was done
    reward: Number = 0.0  # scalar reward
    next_state: dict[str, Any] = Field(default_factory=dict[str, Any])  # context after acting
    done: bool = False  # did the episode end
    episode_id: str = ""  # which episode
    step: Int = 0  # position in the episode
    ts: Number = Field(default_factory=now)  # send time, Unix seconds


class ComponentPerformanceRecord(WireModel):
    """How a component has done so far."""

    component_name: str  # component being tracked
    calls_total: Int = 0  # number of calls
    calls_success: Int = 0  # calls that succeeded
    calls_failed: Int = 0  # calls that failed
    avg_duration_ms: Number = 0.0  # mean duration
    avg_score: Number = 0.0  # mean feedback score
    last_called: Number = 0.0  # time of the last call
    p95_duration_ms: Number = 0.0  # 95th percentile duration


class LearnFeedbackRequest(A2EMessage):
    """`learn/feedback/req`, agent to host."""

    type: str = "learn/feedback/req"
    feedbacks: ListOf[Feedback]  # list of Feedback objects


class LearnFeedbackResponse(A2EMessage):
    """`learn/feedback/resp`, host to agent."""

    type: str = "learn/feedback/resp"
    req_id: str = ""
    recorded: Int = 0  # how many were kept
    new_score: Number | None = None  # updated running score


class LearnExperienceRequest(A2EMessage):
    """`learn/experience/req`, agent to host."""

    type: str = "learn/experience/req"
    experiences: ListOf[Experience] = Field(default_factory=list[Experience])  # list of Experience objects


class LearnExperienceResponse(A2EMessage):
    """`learn/experience/resp`, host to agent."""

    type: str = "learn/experience/resp"
    req_id: str = ""
    stored: Int = 0  # how many were kept


class LearnAdaptRequest(A2EMessage):
    """`learn/adapt/req`, agent to host."""

    type: str = "learn/adapt/req"
    component_name: str = ""  # component concerned; empty means all
    strategy: AdaptStrategy = AdaptStrategy.PPO  # adaptation method (AdaptStrategy)


class LearnAdaptResponse(A2EMessage):
    """`learn/adapt/resp`, host to agent."""

    type: str = "learn/adapt/resp"
    req_id: str = ""
    updated: ListOf[dict[str, Any]] = Field(
        default_factory=list[dict[str, Any]]
    )  # ComponentPerformanceRecord objects that changed
    message: str = ""  # human-readable text


class LearnStatsRequest(A2EMessage):
    """`learn/stats/req`, agent to host."""

    type: str = "learn/stats/req"
    component_name: str = ""  # component concerned; empty means all


class LearnStatsResponse(A2EMessage):
    """`learn/stats/resp`, host to agent."""

    type: str = "learn/stats/resp"
    req_id: str = ""
    components: ListOf[dict[str, Any]] = Field(
        default_factory=list[dict[str, Any]]
    )  # list of ComponentPerformanceRecord objects


class LearnRefinementPlanRequest(A2EMessage):
    """`learn/refinement/plan/req`, agent to host."""

    type: str = "learn/refinement/plan/req"
    component_name: str = ""  # component concerned; empty means all
    scope: str = "local"  # reach of the refinement


class LearnRefinementPlanResponse(A2EMessage):
    """`learn/refinement/plan/resp`, host to agent."""

    type: str = "learn/refinement/plan/resp"
    req_id: str = ""
    plan_id: str = ""  # handle of the plan
    proposals: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of suggested edits
    status: str = ""  # ready, empty and so on


class LearnRefinementApplyRequest(A2EMessage):
    """`learn/refinement/apply/req`, agent to host."""

    type: str = "learn/refinement/apply/req"
    proposal: dict[str, Any] = Field(default_factory=dict[str, Any])  # the suggested edit


class LearnRefinementApplyResponse(A2EMessage):
    """`learn/refinement/apply/resp`, host to agent."""

    type: str = "learn/refinement/apply/resp"
    req_id: str = ""
    refinement_id: str = ""  # handle of an applied refinement
    applied_edits: Int = 0  # edits that went in
    failed_edits: Int = 0  # edits that did not
    rollback_available: bool = False  # can it be undone
    error: str = ""  # failure text, empty when fine


class LearnRefinementRollbackRequest(A2EMessage):
    """`learn/refinement/rollback/req`, agent to host."""

    type: str = "learn/refinement/rollback/req"
    refinement_id: str = ""  # handle of an applied refinement


class LearnRefinementRollbackResponse(A2EMessage):
    """`learn/refinement/rollback/resp`, host to agent."""

    type: str = "learn/refinement/rollback/resp"
    req_id: str = ""
    refinement_id: str = ""  # handle of an applied refinement
    rolled_back: bool = False  # was it undone
    error: str = ""  # failure text, empty when fine


class LearnRefinementReviewRequest(A2EMessage):
    """`learn/refinement/review/req`, agent to host."""

    type: str = "learn/refinement/review/req"
    proposal: dict[str, Any] = Field(default_factory=dict[str, Any])  # the suggested edit


class LearnRefinementReviewResponse(A2EMessage):
    """`learn/refinement/review/resp`, host to agent."""

    type: str = "learn/refinement/review/resp"
    req_id: str = ""
    approved: bool = False  # is the proposal acceptable
    confidence_adjusted: float = 0.0  # confidence after review; a boolean is read too
    reasons: ListOf[str] = Field(default_factory=list[str])  # grounds for the verdict
    risk_level: str = "low"  # low, medium or high


class LearnRefinementHistoryRequest(A2EMessage):
    """`learn/refinement/history/req`, agent to host."""

    type: str = "learn/refinement/history/req"


class LearnRefinementHistoryResponse(A2EMessage):
    """`learn/refinement/history/resp`, host to agent."""

    type: str = "learn/refinement/history/resp"
    req_id: str = ""
    entries: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # past refinements
