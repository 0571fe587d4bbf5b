"""What the runbook answers: what moved the tail, by how much, what follows from what, or why it cannot tell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from tenfold.latency.records import Component, Finding, Interval

Verdict = Literal["explained", "partly", "no_change", "refused"]

COMPONENTS: tuple[Component, ...] = ("ttft", "tpot", "output")


@dataclass(frozen=True, slots=True)
class Shift:
    """How a quantile moved between the windows.

    Args:
        before: In the window before; seconds, or tokens for ``output``.
        after: In the window after.
        change: After less before, with its interval.
        burst_slices: Pieces of time, of 40, that it all sits in; 0: it is not a burst.
    """

    before: float
    after: float
    change: Interval
    burst_slices: int = 0

    @property
    def is_change(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.change.excludes_zero


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """A cause of the shift, or what follows from one.

    Args:
        step: Step of the runbook, 2 to 7.
        kind: What it is (``causes.KINDS``).
        name: In words.
        component: Component that it moved most.
        shares: Share of each component's shift. A first cause's holds what follows from it; a consequence's is the part
            of its first cause's that went through it. First causes and what is unexplained add up to 1.
        consequence_of: Step of the first cause that it follows from; None: it is one.
        evidence: Sentences with the numbers that decided.
        who: Client, tenant, route, replica or deployment it is about; empty: no one in particular.
        since_s: When it began, in seconds since 1970.
        next_action: What to do next.
        lever: Lever of the bill that it bears on.
        cost: What it costs, in words, where the ledger prices it.
    """

    step: int
    kind: str
    name: str
    component: Component
    shares: dict[Component, Interval]
    consequence_of: int | None = None
    evidence: tuple[str, ...] = ()
    who: str = ""
    since_s: float | None = None
    next_action: str = ""
    lever: str | None = None
    cost: str | None = None

    @property
    def share(self) -> Interval:
        """Share of the shift of the component that it moved most."""
        return self.shares[self.component]

    def as_dict(self) -> dict[str, Any]:
        """Give the cause as a document.

        Returns:
            Plain values.
        """
        return {
            "step": self.step,
            "kind": self.kind,
            "name": self.name,
            "who": self.who or None,
            "since": instant_text(self.since_s),
            "component": self.component,
            "share": _interval(self.share),
            "shares": {one: _interval(self.shares[one]) if one in self.shares else None for one in COMPONENTS},
            "consequence_of": self.consequence_of,
            "evidence": list(self.evidence),
            "next_action": self.next_action,
            "lever": self.lever,
            "cost": self.cost,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """The answer for one model.

    Args:
        model: The model.
        verdict: ``explained``, ``partly`` (more than 40 % of a moved component is unexplained), ``no_change`` or
            ``refused``.
        quantile: 0.99, or 0.95 where the windows are small; NaN where they are too small for either.
        requests: Requests of the windows before and after.
        windows: Start and end of both, in seconds since 1970: before since, until, after since, until.
        failed: Share of the requests of either window that were not answered.
        shift: How TTFT, TPOT (of answers of 16 tokens and more), output and E2E moved.
        causes: First causes first, each followed by its consequences.
        findings: What every step found, guilty or not.
        unexplained: Share of each moved component's shift that no cause explains.
        refused: Why there is no answer.
        next_measurements: What to log or measure to learn more.
        notes: What to know of the data.
        is_hosted: Whether a provider serves the model and the log says nothing of its servers.
        gave_up_s: When callers gave up, where that cuts the tail of TTFT off: median end of failed requests after.
    """

    model: str
    verdict: Verdict
    quantile: float
    requests: tuple[int, int]
    windows: tuple[float, float, float, float]
    failed: tuple[float, float] = (0.0, 0.0)
    shift: dict[str, Shift] = field(default_factory=dict[str, Shift])
    causes: tuple[Cause, ...] = ()
    findings: tuple[Finding, ...] = ()
    unexplained: dict[Component, float] = field(default_factory=dict[Component, float])
    refused: str | None = None
    next_measurements: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_hosted: bool = False
    gave_up_s: float | None = None

    @property
    def unexplained_ratio(self) -> float | None:
        """Largest unexplained share, either way, of the components that moved most; None where there is none."""
        return max(self.unexplained.values(), key=abs, default=None)

    @property
    def percent(self) -> str:
        """The quantile as it is called: ``p99``."""
        return f"p{self.quantile * 100:g}"

    def as_dict(self) -> dict[str, Any]:
        """Give the document of ``tenfold diagnose --json``; times in milliseconds.

        Returns:
            Plain values.
        """
        texts = [instant_text(each) for each in self.windows]
        return {
            "model": self.model,
            "verdict": self.verdict,
            "quantile": None if self.quantile != self.quantile else self.quantile,
            "requests": {"before": self.requests[0], "after": self.requests[1]},
            "failed_ratio": {"before": self.failed[0], "after": self.failed[1]},
            "callers_give_up_ms": None if self.gave_up_s is None else self.gave_up_s * 1000,
            "windows": {"before": {"from": texts[0], "to": texts[1]}, "after": {"from": texts[2], "to": texts[3]}},
            "shift": {f"{name}_{self.percent}{_unit(name)}": _shift(name, one) for name, one in self.shift.items()},
            "causes": [cause.as_dict() for cause in self.causes],
            "unexplained_ratio": self.unexplained_ratio,
            "unexplained": dict(self.unexplained),
            "refused": self.refused,
            "steps": [_finding(one) for one in self.findings],
            "next_measurements": list(self.next_measurements),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        """Say what it is in one line."""
        from tenfold.latency import wording

        return f"<Diagnosis of {self.model}: {wording.answer(self)}>"

    def _repr_html_(self) -> str:
        """Show the answer with its causes in a notebook."""
        from tenfold.latency import wording

        return wording.as_html(self)


def instant_text(at_s: float | None) -> str | None:
    """Write an instant for a document.

    Args:
        at_s: Seconds since 1970; None or NaN: not known.

    Returns:
        ISO 8601 in UTC, or None.
    """
    return None if at_s is None or math.isnan(at_s) else datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")


def _unit(name: str) -> str:
    return "_tokens" if name == "output" else "_ms"


def _shift(name: str, one: Shift) -> dict[str, Any]:
    scale = 1.0 if name == "output" else 1000.0
    low, mid, high = (value * scale for value in one.change)
    return {
        "before": one.before * scale,
        "after": one.after * scale,
        "change": {"low": low, "mid": mid, "high": high},
        "is_change": one.is_change,
        "burst_slices": one.burst_slices,
    }


def _interval(one: Interval) -> dict[str, float]:
    return one._asdict()


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "step": one.step,
        "status": one.status,
        "kind": one.kind or None,
        "who": one.who or None,
        "evidence": list(one.evidence),
        "measures": {name: value for name, value in one.measures.items() if math.isfinite(value)},
        "missing": list(one.missing),
    }
