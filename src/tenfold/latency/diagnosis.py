"""The runbook run: two windows in, what moved the tail out, model by model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tenfold.latency import amounts, wording
from tenfold.latency.answers import COMPONENTS, Cause, Diagnosis, Shift
from tenfold.latency.blame import load_of
from tenfold.latency.causes import causes_of
from tenfold.latency.costing import cost_words
from tenfold.latency.counterfactual import LEAST_OVERLAP, Counterfactual, Shares
from tenfold.latency.facts import Facts, facts_of
from tenfold.latency.guilty import Guilty
from tenfold.latency.load import work_changes
from tenfold.latency.preconditions import check, failed_rows, failed_share
from tenfold.latency.records import Component, Finding, Pair, Window
from tenfold.latency.shift import shifts
from tenfold.latency.steps import s1_split, s2_lengths, s3_cache, s4_scheduling, s5_deploy, s6_hardware, s7_upstream
from tenfold.latency.windows import Share, Spec, read_pair
from tenfold.prices import PriceBook

# What may stay unexplained of a component's shift (serving.md 12).
_UNEXPLAINED = 0.4
# Verdicts that name a cause, the most telling first.
_TOLD = ("explained", "partly")
# A component that moved less than this part of the one that moved most, as logs, does not decide the verdict.
_MINOR = 1 / 3
# Failed requests from which it is looked at when callers give up, and how near to the tail of TTFT that is.
_GAVE_UP, _NEAR_TAIL = 0.03, 0.1
# What only a server knows, by the field of a window that holds it.
_SERVER = ("queue_s", "preemptions", "running", "waiting", "kv", "replica")
_SERVERS = (4, 5, 6)
# Files that a step may lack; they are no columns to log.
_FILES = ("events", "hosts", "metrics")
# What is left where no step accuses, by whether a provider serves the model.
_LEFT = {
    True: "what is not logged, or a change in how the provider serves, is left",
    False: "something that is not logged is left, or several things that each stayed below their threshold",
}


@dataclass(frozen=True, slots=True, eq=False)
class Diagnoses:
    """The answers, one a model.

    Args:
        all: The most telling first.
        mix: Shares of the models among the requests.
        notes: What to know of the windows.
    """

    all: tuple[Diagnosis, ...]
    mix: tuple[Share, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def main(self) -> Diagnosis:
        """The most telling."""
        return self.all[0]

    def as_dict(self) -> dict[str, Any]:
        """Give the document of ``tenfold diagnose --json``.

        Returns:
            The main answer's keys; with several models ``models``, all of them, and ``model_mix``.
        """
        document = self.main.as_dict()
        document["notes"] = [*self.notes, *document["notes"]]
        if len(self.all) > 1 or len(self.mix) > 1:
            document["models"] = [one.as_dict() for one in self.all]
            document["model_mix"] = [share._asdict() for share in self.mix]
        return document

    def __repr__(self) -> str:
        """Say what it is in one line each."""
        return "\n".join(map(repr, self.all))

    def _repr_html_(self) -> str:
        """Show the answers in a notebook."""
        return "<hr>".join(wording.as_html(one) for one in self.all)


def diagnose(
    before: Spec,
    after: Spec,
    *,
    where: str | None = None,
    events: str | Path | None = None,
    hosts: str | Path | None = None,
    metrics: str | Path | None = None,
    zone: str | None = None,
    book: PriceBook | None = None,
    reading_options: Mapping[str, Any] | None = None,
) -> Diagnoses:
    """Say what moved the latency tail between two windows of requests, or that it cannot be told.

    Args:
        before: The window that was fine: paths of logs, or ``FILE.duckdb@FROM..TO``.
        after: The window in question.
        where: SQL predicate over columns of ``requests``: whose latencies are looked at, in both.
        events: File of what was done (ts, kind, what, where).
        hosts: File of samples of hosts (ts, replica, metric, value).
        metrics: File of samples of the engines.
        zone: Time zone of days and instants that name none.
        book: Price book, for what a cause costs; None: the shipped one.
        reading_options: What ``load`` is told of logs that are read now (``map``, ``format``, ``set``).

    Returns:
        An answer a model.

    Raises:
        TenfoldError: A window or file cannot be read.
    """
    pairs = read_pair(
        before,
        after,
        where=where,
        events=events,
        hosts=hosts,
        metrics=metrics,
        zone=zone,
        reading_options=reading_options,
    )
    return answers_of(pairs.pairs, pairs.mix, pairs.notes, book)


def answers_of(
    pairs: Sequence[Pair], mix: tuple[Share, ...] = (), notes: tuple[str, ...] = (), book: PriceBook | None = None
) -> Diagnoses:
    """Diagnose pairs of windows.

    Args:
        pairs: A pair a model.
        mix: Shares of the models.
        notes: What to know of the windows.
        book: Price book; None: the shipped one.

    Returns:
        An answer a pair.
    """
    found = [diagnose_pair(pair, book) for pair in pairs]
    found.sort(key=_rank)
    return Diagnoses(tuple(found), mix, notes)


def _rank(one: Diagnosis) -> tuple[int, float]:
    """Put what is explained first; where nothing is, the model that is asked most, refused or not."""
    if one.verdict in _TOLD:
        return _TOLD.index(one.verdict), -_moved_by(one.shift) * one.requests[1]
    return len(_TOLD), -one.requests[1]


def _moved_by(shift: dict[str, Shift]) -> float:
    return max((_log(one) for one in shift.values() if one.is_change), default=0.0)


def _log(one: Shift) -> float:
    return abs(float(np.log(one.after / one.before))) if one.before > 0 and one.after > 0 else 0.0


def diagnose_pair(pair: Pair, book: PriceBook | None = None) -> Diagnosis:
    """Run the seven steps on one model's windows.

    Args:
        pair: The windows.
        book: Price book; None: the shipped one.

    Returns:
        The answer.
    """
    judged = check(pair)
    common: dict[str, Any] = {
        "model": pair.model,
        "quantile": judged.quantile,
        "requests": (pair.before.asked_size, pair.after.asked_size),
        "failed": tuple(failed_share(window) for window in pair.windows),
        "windows": (pair.before.since_s, pair.before.until_s, pair.after.since_s, pair.after.until_s),
        "notes": (*pair.notes, *judged.notes),
        "is_hosted": _is_hosted(pair),
    }
    if judged.refused is not None:
        return Diagnosis(
            verdict="refused", refused=judged.refused, next_measurements=judged.next_measurements, **common
        )
    pair = judged.pair
    facts = facts_of(pair, judged.quantile)
    moved = shifts(pair, facts)
    findings = look(pair, facts, moved)
    common |= {"shift": moved, "findings": findings, "gave_up_s": _gave_up(pair.after, moved)}
    components: list[Component] = [name for name in COMPONENTS if name in moved and moved[name].is_change]
    if not components:
        return Diagnosis(verdict="no_change", **common)
    guilty = Guilty(findings, pair)
    game = Counterfactual(pair, facts, guilty.parts())
    shares: dict[Component, Shares] = {
        name: game.shares(name, is_burst=moved[name].burst_slices > 0) for name in components
    }
    work = work_changes(pair, facts, game.kinds, game.uncached_back, game.fresh)
    load = load_of(guilty, facts, work, _rate_log(pair))
    causes, unexplained = causes_of(guilty, shares, moved, load)
    causes = tuple(_with_cost(one, guilty, game, book) for one in causes)
    if game.apart:
        common["notes"] = (*common["notes"], *(_apart_words(name, share) for name, share in game.apart.items()))
    most = max(_log(moved[name]) for name in components)
    deciding: dict[Component, float] = {
        name: unexplained[name] for name in components if _log(moved[name]) >= _MINOR * most
    }
    is_rest_large = {name: abs(rest) > _UNEXPLAINED for name, rest in deciding.items()}
    refused = None
    verdict = "partly" if any(is_rest_large.values()) else "explained"
    if causes and causes[0].share.low <= 0:
        verdict = "partly"
    if not causes:
        verdict = "refused"
        refused = f"The tail moved, and none of the seven steps can say why: {_LEFT[common['is_hosted']]}."
    return Diagnosis(
        verdict=verdict,
        causes=causes,
        unexplained=deciding,
        refused=refused,
        next_measurements=_next_to_log(pair, findings, moved) if verdict != "explained" else (),
        **common,
    )


def _gave_up(after: Window, moved: Mapping[str, Shift]) -> float | None:
    """Give when callers gave up, if many did and that is where the tail of TTFT ends."""
    failed = failed_rows(after)
    if after.seen_end_s is None or "ttft" not in moved or failed.sum() < _GAVE_UP * max(after.asked_size, 1):
        return None
    ends = after.seen_end_s[failed & np.isfinite(after.seen_end_s)]
    tail = moved["ttft"].after
    if not ends.size or not abs(float(np.median(ends)) - tail) <= _NEAR_TAIL * tail:
        return None
    return float(np.median(ends))


def _is_hosted(pair: Pair) -> bool:
    """Tell whether a provider serves the model and nothing of its servers is known."""
    known = any(getattr(window, name) is not None for window in pair.windows for name in _SERVER)
    return pair.billed[0] not in ("", "self-hosted") and not known and pair.metrics is None and pair.hosts is None


def _apart_words(component: Component, share: float) -> str:
    return (
        f"No overlap: for {component} the lengths of both windows hardly meet ({share:.0%}; {LEAST_OVERLAP:.0%} is "
        "needed), so what they moved of it can not be told; narrow both with --where"
    )


def _with_cost(cause: Cause, guilty: Guilty, game: Counterfactual, book: PriceBook | None) -> Cause:
    finding = guilty.of(cause.kind)
    return cause if finding is None else replace(cause, cost=cost_words(finding, game.pair, game.uncached_back, book))


def look(pair: Pair, facts: Facts, moved: dict[str, Shift]) -> tuple[Finding, ...]:
    """Run the seven steps.

    Args:
        pair: The windows.
        facts: What is known of them.
        moved: How each component's quantile moved.

    Returns:
        What each found, in order of the steps.
    """
    upstream = s7_upstream.look(pair, facts)
    fresh = next((one.rows for one in upstream if one.kind == "new_client" and one.status == "guilty"), None)
    return (
        *s1_split.look(pair, facts, moved),
        *s2_lengths.look(pair, facts, fresh),
        *(_kept(one, moved) for one in s3_cache.look(pair, facts)),
        *s4_scheduling.look(pair, facts, is_later="ttft" in moved and moved["ttft"].change.low > 0),
        *s5_deploy.look(pair, facts),
        *s6_hardware.look(pair, facts),
        *upstream,
    )


def _kept(one: Finding, moved: dict[str, Shift]) -> Finding:
    """Keep a cache that holds more as a cause only where the first token came sooner."""
    is_sooner = "ttft" in moved and moved["ttft"].change.high < 0
    return replace(one, kind="", status="innocent") if one.kind == "cache_gained" and not is_sooner else one


def _rate_log(pair: Pair) -> float:
    rates = [window.size / max(window.until_s - window.since_s, 1e-9) for window in pair.windows]
    return float(np.log(rates[1] / rates[0])) if min(rates) > 0 else 0.0


def _next_to_log(pair: Pair, findings: Sequence[Finding], moved: Mapping[str, Shift]) -> tuple[str, ...]:
    """Say what to log so that the steps that could not look can; what a provider alone knows is asked of it."""
    if _is_hosted(pair):
        return _ticket(pair, findings, moved)
    out = [
        f"For step {one.step} log {', '.join(names)}."
        for one in findings
        if one.status == "not separable" and (names := [name for name in one.missing if name not in _FILES])
    ]
    return tuple(dict.fromkeys((*out, *_events(pair))))


def _events(pair: Pair) -> tuple[str, ...]:
    if pair.events is not None:
        return ()
    return ("Give the deploy and configuration events of the time with --events (ts, kind, what, where).",)


def _ticket(pair: Pair, findings: Sequence[Finding], moved: Mapping[str, Shift]) -> tuple[str, ...]:
    split = ", ".join(
        f"{amounts.NAMES[name]} {amounts.shift_text(name, one)}" for name, one in moved.items() if one.is_change
    )
    since = amounts.moment(pair.after.since_s) if np.isfinite(pair.after.since_s) else ""
    parts = (("the split", split), ("the time", f"from {since}" if since else ""))
    told = " and ".join(f"{name} ({text})" if text else name for name, text in parts)
    own = {
        name: None
        for one in findings
        if one.step not in _SERVERS
        for name in one.missing
        if name not in (*_FILES, "deployment", "replica")
    }
    log = (f"Meanwhile log {', '.join(own)}.",) if own else ()
    return (f"Steps 4 to 6 are the provider's: open a ticket with {told}.", *log, *_events(pair))
