"""What the route lever found, as facts: counts and money, and what a router is held against on the same requests."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from tenfold.levers.base import Assumed, Bill
from tenfold.levers.baselines import Baseline, Outcome, Point, baselines, best_single
from tenfold.levers.evals import SCORE_UNITS, Evals
from tenfold.levers.quality import Estimated, gap_recovered, quality_drop, sample_size
from tenfold.levers.scoring import least_score, scale_note, unmatched
from tenfold.levers.tally import MOVED, Tally, fact
from tenfold.money import usd_text
from tenfold.store import steps

REFUSED = {
    "same_model": "requests that run on that model already",
    "no_score": "requests without a score of that model: left as they are",
    "below_quality": "requests whose score is too low",
    "unlike_session": "requests that would do, of sessions in which another would not",
    "vetoed": "requests whose service levels cannot hold both calls",
    "unpriced": "requests without a price now: left as they are",
    "no_price": "requests whose tier, region or day has no price at that model: left as they are",
}
_ROUTED = ("routed", "accepted", "escalated")
_JUDGED, _FOUND, _PAIRS = "lever_route_judged", "lever_route_found", "lever_route_pairs"
_BARS = "lever_route_bars"
# Labels bound a share of good answers to this many either way.
_HALF_WIDTH = 0.05


class Found(NamedTuple):
    """A judgement, counted.

    Args:
        frame: Rows of ``lever_route_found``.
    """

    frame: pl.DataFrame

    def of(self, *verdicts: str) -> int:
        """Count requests in where.

        Args:
            *verdicts: Which verdicts.

        Returns:
            The number.
        """
        return int(self.frame.filter(pl.col("verdict").is_in(verdicts))["requests"].sum() or 0)

    @property
    def in_where(self) -> int:
        """Billed requests in where."""
        return int(self.frame.filter(pl.col("verdict").is_not_null())["requests"].sum() or 0)

    @property
    def routed(self) -> int:
        """Requests that the other model answers, or tries."""
        return self.of(*_ROUTED)

    @property
    def forfeited(self) -> int:
        """Requests that stay and lose their cache."""
        return int(self.frame.filter(way="forfeited")["requests"].sum() or 0)

    @property
    def unknown_reads(self) -> int:
        """Cached reads of requests that no session says anything about."""
        there = self.frame.filter(pl.col("way").is_in(_ROUTED))
        return int(there["unknown_read_tokens"].sum() or 0)

    @property
    def lost_reads(self) -> int:
        """Cached reads that become uncached, because the turn before ran elsewhere."""
        there = self.frame.filter(pl.col("way").is_in((*_ROUTED, "forfeited")))
        return int(there["lost_read_tokens"].sum() or 0)

    @property
    def fees(self) -> int:
        """Charges by the request, in pUSD."""
        return sum(int(value) for value in self.frame["fee_pusd"])


def found(bill: Bill, judged: str) -> Found:
    """Count a judgement.

    Args:
        bill: The log's own bill.
        judged: View of what was judged.

    Returns:
        The counts.
    """
    return Found(bill.session.engine.fetch(f"{steps.filled(_FOUND, judged=judged)}\norder by all nulls last"))


def bars(bill: Bill, assumed: Assumed, *, judged: str, scored: str) -> dict[str, dict[str, Any]]:
    """Find who set the bars that requests in where do not reach.

    Args:
        bill: The log's own bill.
        assumed: The lever's assumptions.
        judged: View of the judgement.
        scored: View of the scored requests.

    Returns:
        Bar to its row of ``lever_route_bars``.
    """
    own = assumed.values["min_quality"]
    own_e12 = f"cast({least_score(own) if isinstance(own, Decimal) else 'null'} as bigint)"
    frame = bill.session.engine.fetch(steps.filled(_BARS, judged=judged, scored=scored, own_e12=own_e12))
    return {row["bar"]: row for row in frame.rows(named=True)}


def evidence(
    bill: Bill,
    assumed: Assumed,
    counts: Found,
    counted: Tally,
    evals: Evals,
    *,
    scored: str,
    judged: str,
    trial: str,
    same_tokens: int,
    otherwise: int | None,
) -> tuple[dict[str, Any], ...]:
    """Write the facts.

    Args:
        bill: The log's own bill.
        assumed: The lever's assumptions.
        counts: The judgement, counted.
        counted: What the lever did on its own.
        evals: The evals; without rows where there is no file.
        scored: View of the scored requests.
        judged: View of the judgement.
        trial: Table of every request that the other model was tried on, priced.
        same_tokens: Saving in pUSD with every token as billed.
        otherwise: Saving in pUSD of the other of sticky and request by request; None where it is the same.

    Returns:
        One fact each, with unit and step.
    """
    is_cascade = assumed.values["verifier"] is not None
    facts = [
        fact("requests_in_where", counts.in_where, "requests", _JUDGED),
        fact("requests_routed", counts.routed, "requests", _JUDGED),
        *([fact("requests_escalated", counts.of("escalated"), "requests", _JUDGED)] if is_cascade else []),
        fact("cost_now_usd", usd_text(counted.total("now_pusd", MOVED)), "USD", "priced"),
        fact("cost_moved_usd", usd_text(counted.total("then_pusd", MOVED)), "USD", "priced"),
        fact("fees_usd", usd_text(counts.fees), "USD", _JUDGED),
        fact("same_token_saving_usd", usd_text(same_tokens), "USD, with every token as billed", "priced"),
    ]
    if otherwise is not None:
        name = "per_request_saving_usd" if assumed.values["sticky"] else "sticky_saving_usd"
        facts.append(fact(name, usd_text(otherwise), "USD, the variant that was not chosen", "priced"))
    if counts.forfeited:
        facts.append(
            fact("forfeited", counts.forfeited, "requests that stay and find no cache after a routed turn", _JUDGED)
        )
    if counts.lost_reads:
        facts.append(fact("cache_read_tokens_lost", counts.lost_reads, "tokens", _FOUND))
    facts += [fact(name, counts.of(name), said, _JUDGED) for name, said in REFUSED.items() if counts.of(name)]
    if assumed.values["evals"] is None:
        return (*facts, _labels(bill, judged))
    return (*facts, *_file(bill, assumed, evals), *_held_against(bill, assumed, scored, judged, trial))


def _labels(bill: Bill, judged: str) -> dict[str, Any]:
    """Say how many scores would decide: for each feature, what bounds its share of good answers."""
    sql = (
        "select b.feature, cast(count(*) as bigint) as n "
        f"from {judged} as j join lever_base as b on j.rid = b.rid where j.verdict in ('routed', 'accepted') "
        "group by b.feature"
    )
    each = sample_size(_HALF_WIDTH)
    wanted = sum(min(int(n), each) for n in bill.session.engine.fetch(sql)["n"])
    return fact("labels_that_would_decide", wanted, f"labels, at most {each} a feature: 5 points either way", _JUDGED)


def _file(bill: Bill, assumed: Assumed, evals: Evals) -> list[dict[str, Any]]:
    lost = unmatched(bill.session.engine, evals)
    facts = [fact("evals", len(evals.frame), f"scores in {evals.file.name}", "evals")]
    if lost.request_ids:
        facts.append(fact("evals_of_unknown_requests", lost.request_ids, "request ids that no request has", "evals"))
    if lost.features:
        names = ", ".join(lost.features)
        facts.append(
            fact("evals_of_unknown_features", len(lost.features), f"features that no request has: {names}", "evals")
        )
    least = assumed.values["min_quality"]
    note = scale_note(evals, least) if isinstance(least, Decimal) else ""
    return [*facts, *([fact("scales_differ", 1, note, "evals")] if note else [])]


def _held_against(bill: Bill, assumed: Assumed, scored: str, judged: str, trial: str) -> list[dict[str, Any]]:
    sql = steps.filled(_PAIRS, scored=scored, judged=judged, trial=trial)
    pairs = bill.session.engine.fetch(f"{sql}\norder by s.rid")
    if not len(pairs):
        return []
    weak, strong = ([Decimal(one) / SCORE_UNITS for one in pairs[name]] for name in ("weak_e12", "strong_e12"))
    to_weak = pairs["is_weak"].to_list()
    costs = zip(weak, strong, pairs["weak_pusd"], pairs["strong_pusd"], strict=True)
    held = baselines([Outcome(*one) for one in costs], to_weak)
    mix = [float(w if small else s) for w, s, small in zip(weak, strong, to_weak, strict=True)]
    strongs, sessions = [float(one) for one in strong], pairs["session_id"].to_list()
    gap = gap_recovered(mix, [float(one) for one in weak], strongs, sessions)
    drop = quality_drop(mix, strongs, sessions)
    model = str(assumed.values["to_model"])
    n = len(pairs)
    best = best_single(
        Point(name, one.quality, Decimal(one.cost_pusd))
        for name, one in (("today's models", held.always_strong), (model, held.always_weak))
    )
    return [
        fact("paired_requests", n, "requests with a score of both models", _PAIRS),
        *_one("routed", held.routed),
        *_one("all_original", held.always_strong),
        *_one("all_small", held.always_weak),
        *_one("random_same_rate", held.random),
        *_one("oracle", held.oracle),
        fact("best_static_model", best.name, "the better of today's models and the other one, for all", _PAIRS),
        *_bounded("gap_recovered", gap, "share of the gap between the models, 1 is today's"),
        *_bounded("quality_drop", drop, "points of score lost"),
    ]


def _one(name: str, way: Baseline) -> list[dict[str, Any]]:
    said = f"mean score on the paired requests, {way.strong_share:.0%} of them by today's models"
    return [
        fact(f"score_{name}", _text(way.quality), said, _PAIRS),
        fact(f"cost_{name}_usd", usd_text(way.cost_pusd), "USD for the paired requests, one call each", _PAIRS),
    ]


def _bounded(name: str, figure: Estimated, unit: str) -> list[dict[str, Any]]:
    ends = (("", figure.value), ("_low", figure.low), ("_high", figure.high))
    words = {"": unit, "_low": f"{unit}; 2.5 % point, paired", "_high": f"{unit}; 97.5 % point, paired"}
    return [
        fact(f"{name}{end}", _text(Decimal(str(value))), words[end], _PAIRS) for end, value in ends if value is not None
    ]


def _text(value: Decimal) -> str:
    return f"{value:.4f}"
