"""What the runbook works on: two windows of requests as columns, what else is known of the time, what a step finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int32]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Component = Literal["ttft", "tpot", "output"]

# Output tokens from which a request's time per output token is taken (serving.md 12, step 1).
LONG_OUTPUT = 16


class Labels(NamedTuple):
    """A column of names.

    Args:
        codes: A number a row, place in ``names``; -1 where the log has none.
        names: The names, the same list in both windows.
    """

    codes: Codes
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Requests of one window and model in order of arrival, a place a request; None: the log lacks the column.

    Args:
        name: ``before`` or ``after``.
        since_s: Its start, in seconds since 1970 (UTC).
        until_s: Its end, not in it.
        ts_s: Arrival, in seconds since 1970.
        ok: Whether it was answered; latencies of others are NaN.
        ttft_s: Time to the first token, in seconds; NaN: not known.
        e2e_s: Time to the last token, in seconds; NaN: not known.
        input: Tokens of the prompt; NaN: not known.
        output: Tokens of the answer, reasoning in them; NaN: not known.
        cached: Tokens of the prompt read from a cache; NaN: not known.
        reasoning: Reasoning tokens.
        queue_s: Wait before the prompt was scheduled, in seconds.
        asked: Whether its latencies are looked at; of others they are NaN; None: all are.
        seen_first_s: Time to the first token as logged, of failed requests too, in seconds.
        seen_end_s: Time to the end as logged, of failed requests too, in seconds.
        preemptions: Times that it was preempted.
        running: Requests that its replica computed when it arrived.
        waiting: Requests in its replica's queue when it arrived.
        kv: Share of its replica's KV cache in use when it arrived.
        attempt: Attempt, 0 the first.
        is_structured: Whether its answer had to fit a schema.
        tenant: Who asked (team, else project, org, user or key).
        route: Feature.
        client: Application and version.
        replica: Pod, host or GPU.
        deployment: Image and configuration.
        revision: Revision of the model.
        prompt: Prompt and its settings, by hash: equal labels are equal requests.
        session: Session.
        status: Outcome: ``ok``, or what went wrong.
        region: Region.
    """

    name: str
    since_s: float
    until_s: float
    ts_s: Floats
    ok: Mask
    ttft_s: Floats
    e2e_s: Floats
    input: Floats
    output: Floats
    cached: Floats | None = None
    reasoning: Floats | None = None
    queue_s: Floats | None = None
    asked: Mask | None = None
    seen_first_s: Floats | None = None
    seen_end_s: Floats | None = None
    preemptions: Floats | None = None
    running: Floats | None = None
    waiting: Floats | None = None
    kv: Floats | None = None
    attempt: Floats | None = None
    is_structured: Mask | None = None
    tenant: Labels | None = None
    route: Labels | None = None
    client: Labels | None = None
    replica: Labels | None = None
    deployment: Labels | None = None
    revision: Labels | None = None
    prompt: Labels | None = None
    session: Labels | None = None
    status: Labels | None = None
    region: Labels | None = None

    @property
    def size(self) -> int:
        """Requests in it."""
        return self.ts_s.size

    @property
    def judged(self) -> Mask:
        """Requests that are looked at and were answered."""
        return self.ok if self.asked is None else self.ok & self.asked

    @property
    def asked_size(self) -> int:
        """Requests in it that are looked at."""
        return self.size if self.asked is None else int(self.asked.sum())

    @property
    def tpot_s(self) -> Floats:
        """Mean time an output token after the first, in seconds; NaN below 16 output tokens."""
        long = self.output >= LONG_OUTPUT
        return np.where(long, (self.e2e_s - self.ttft_s) / np.where(long, self.output - 1, 1.0), np.nan)


class Event(NamedTuple):
    """Something that was done, from the file of events.

    Args:
        ts_s: When, in seconds since 1970.
        kind: deploy, config, scale, restart, client, or as the file says.
        what: What was done.
        where: Replica, deployment or client it was done to; empty: everywhere.
        line: Its line in the file.
    """

    ts_s: float
    kind: str
    what: str
    where: str
    line: int


class Samples(NamedTuple):
    """Measurements over time, from the file of hosts or of engine metrics; a place a sample, in order of time.

    Args:
        ts_s: When, in seconds since 1970.
        replica: Of what; empty: of all.
        metric: What was measured, as the file calls it.
        value: The value.
    """

    ts_s: Floats
    replica: NDArray[np.str_]
    metric: NDArray[np.str_]
    value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two windows of one model, and what is known of their time.

    Args:
        model: The model, for people.
        before: The window that was fine.
        after: The window in question.
        events: What was done, in order of time; None: no file was given.
        hosts: Samples of hosts; None: no file was given.
        metrics: Samples of engines; None: no file was given.
        missing: Columns of the requests table that both windows lack.
        notes: What a reader must know of the windows (rows left out, columns that only one window has).
        billed: Provider and model as logged, for prices; empty: not known.
    """

    model: str
    before: Window
    after: Window
    events: tuple[Event, ...] | None = None
    hosts: Samples | None = None
    metrics: Samples | None = None
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    billed: tuple[str, str] = ("", "")

    @property
    def windows(self) -> tuple[Window, Window]:
        """Both, before and after."""
        return self.before, self.after


class Interval(NamedTuple):
    """A value with its range.

    Args:
        low: Lower end.
        mid: Value.
        high: Upper end.
    """

    low: float
    mid: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside."""
        return self.low > 0 or self.high < 0


Status = Literal["guilty", "innocent", "not separable"]


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """What a step of the runbook found.

    Args:
        step: 1 to 7.
        kind: What it found, a word of ``causes.KINDS``; empty where it found nothing.
        status: Whether its test accuses; ``not separable`` where the columns for it are missing.
        evidence: Sentences with the numbers that decided.
        measures: The numbers themselves, by name (rates and ratios as shares, times in seconds).
        effect: Size of the effect with its interval, in the unit that ``effect_name`` says.
        effect_name: What ``effect`` is.
        missing: Columns or files that would have let it say more.
        since_s: When it began, in seconds since 1970, where that can be told.
        rows: Requests of the window after that it touches; None: any.
        who: Client, tenant, route, replica or deployment that it is about; empty: no one in particular.
        next_action: What the engineer on call does next.
    """

    step: int
    kind: str
    status: Status
    evidence: tuple[str, ...] = ()
    measures: dict[str, float] = field(default_factory=dict[str, float])
    effect: Interval | None = None
    effect_name: str = ""
    missing: tuple[str, ...] = ()
    since_s: float | None = None
    rows: Mask | None = None
    who: str = ""
    next_action: str = ""
