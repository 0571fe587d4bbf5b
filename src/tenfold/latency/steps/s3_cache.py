"""Step 3: whether the prefix cache lost tokens that it held before, for whom, from when, and where prompts break."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tenfold.latency.amounts import about
from tenfold.latency.blocking import huge_prompts
from tenfold.latency.cache_reads import COLD, LONG, Reads, only_longer, reads_of
from tenfold.latency.callers import applications
from tenfold.latency.facts import Facts
from tenfold.latency.records import Finding, Floats, Interval, Labels, Mask, Pair
from tenfold.latency.statistics import ALPHA, ks_distance, onset

STEP = 3
# Fall of the hit rate from which it is a broken cache (serving.md 12, step 3).
LEAST_FALL = 0.1
# Requests that newly found almost nothing, as a share: five times the tail at p99 (I03, which a mean can hide).
LEAST_COLD = 0.05
# Share of requests from which a cohort can fill the tail at p99 by itself.
LEAST_ROWS = 0.01
# Share of all lost tokens that a narrower cohort must hold to be named in place of a wider one.
HOLDS = 0.9
# Cached tokens count as the same below this difference: the largest block of engines and providers.
_BLOCK = 128
_PINNED = 0.5
# Replicas grew if there are this many times as many; hit rates fell on all of them if on this share of the old ones.
_MORE_REPLICAS = 1.2
_MOST = 0.8
# Loss at the fullest fifth of the KV cache over that at the emptiest, from which prompts were evicted, not changed; and
# how much more of it is in use (a broken cache holds somewhat more, but loses the same at any load).
_EVICTED = 2.0
_FULLER = 1.3
# Best cohorts of a column that are tested; their interval is widened by all that could have been.
_TESTED = 6
# Where attempts are counted, and a window holds no first one.
_RETRIES = "a window holds retries alone (attempt above 0): what they read depends on how long they waited"


@dataclass(frozen=True, slots=True, eq=False)
class _Cohort:
    """Requests after that share a name; all of them where the column is empty."""

    column: str
    name: str
    rows: Mask
    change: Interval
    lost: float
    is_significant: bool

    @property
    def text(self) -> str:
        return f"{self.column} {self.name}" if self.column else "all traffic"


def look(pair: Pair, facts: Facts) -> tuple[Finding, ...]:
    """Look at the prefix cache.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        One finding: ``cache_broken``, ``cache_diluted``, ``cache_gained``, innocent, or not separable.

    Source:
        serving.md 12, step 3; incidents.md, section A.
    """
    reads = reads_of(pair, facts)
    if reads is None:
        return (
            Finding(
                STEP,
                "",
                "not separable",
                ("the log does not say how many tokens of a prompt came from a cache: provider-side, not separable",),
                missing=("cache_read_tokens",),
            ),
        )
    if not all(known.any() for known in reads.known):
        return (Finding(STEP, "", "not separable", (_RETRIES,)),)
    # a few prompts far above any before are new: no cache held them, and step 4 looks at them (I19)
    judged = ~only_longer(pair, reads) & ~huge_prompts(pair, facts)
    everyone = _cohort(reads, "", "", judged, ALPHA)
    cohorts = [everyone, *_cohorts(pair, reads, judged)]
    accused = [one for one in cohorts if one.is_significant]
    measures = _overall(pair, reads, everyone)
    if not accused:
        return (_innocent(measures, everyone),)
    most = max(one.lost for one in accused)
    worst = min((one for one in accused if one.lost >= HOLDS * most), key=lambda one: int(one.rows.sum()))
    return (_accuse(pair, facts, reads, worst, measures),)


def _cohort(reads: Reads, column: str, name: str, rows: Mask, alpha: float) -> _Cohort:
    change = reads.hit.change(rows, alpha)
    cold = reads.cold.change(rows, alpha)
    fell = change.mid <= -LEAST_FALL and change.high < 0
    froze = cold.mid >= LEAST_COLD and cold.low > 0 and change.high < 0
    return _Cohort(column, name, rows, change, -float(reads.hit.excess[rows].sum()), fell or froze)


def _cohorts(pair: Pair, reads: Reads, judged: Mask) -> list[_Cohort]:
    """Test the cohorts that lost most, column by column."""
    loss, asked = (np.where(judged, each, 0.0) for each in (-reads.hit.excess, reads.hit.common * reads.hit.after[1]))
    eligible: list[tuple[str, str, Mask]] = []
    total = 0
    for column in ("client", "application", "tenant", "route"):
        labels: Labels | None = applications(pair.after) if column == "application" else getattr(pair.after, column)
        if labels is None or len(labels.names) < 2:
            continue
        place, count = labels.codes + 1, len(labels.names) + 1
        lost, tokens = (np.bincount(place, weight, count) for weight in (loss, asked))
        share = np.bincount(place[judged], minlength=count) / max(pair.after.size, 1)
        large = np.flatnonzero((share >= LEAST_ROWS) & (tokens > 0))
        large = large[large > 0]
        total += large.size
        tested = large[np.argsort(-lost[large], kind="stable")][:_TESTED]
        eligible += [(column, labels.names[code - 1], (labels.codes == code - 1) & judged) for code in tested.tolist()]
    return [_cohort(reads, column, name, rows, ALPHA / max(total, 1)) for column, name, rows in eligible]


def _overall(pair: Pair, reads: Reads, everyone: _Cohort) -> dict[str, float]:
    hits: list[Floats] = []
    shares: list[float] = []
    for (read, asked, _), known in zip((reads.hit.before, reads.hit.after), reads.known, strict=True):
        hits.append(read[known] / asked[known])
        shares.append(float(read.sum() / asked.sum()))
    common = reads.hit.common & reads.known[1]
    asked = float(pair.after.input[reads.known[1]].sum())
    return {
        "hit_before": shares[0],
        "hit_after": shares[1],
        "hit_standardised_change": everyone.change.mid,
        "uncached_tokens_added": everyone.lost,
        "common_share": float(pair.after.input[common].sum()) / asked,
        "ks": ks_distance(hits[0], hits[1]),
        "cold_before": float((hits[0] < COLD).mean()),
        "cold_after": float((hits[1] < COLD).mean()),
        "break_tokens": math.nan,
    }


def _innocent(measures: dict[str, float], everyone: _Cohort) -> Finding:
    change = everyone.change
    rates = f"{measures['hit_before']:.1%} -> {measures['hit_after']:.1%}"
    evidence = [f"hit rate {rates}; {_points(change)} for the same tenants, routes and lengths"]
    if math.isnan(change.mid):
        evidence = ["no tenant, route and length was in both windows: the hit rate cannot be compared"]
    elif measures["hit_after"] - measures["hit_before"] <= -LEAST_FALL:
        evidence.append("the overall rate fell by mix alone: no kind of request lost what it had")
    elif change.low > 0 and change.mid >= LEAST_FALL:
        evidence.append(f"the cache got better: {about(-everyone.lost)} more tokens read from it")
        return Finding(STEP, "cache_gained", "guilty", tuple(evidence), measures, change, "change of the hit rate")
    return Finding(STEP, "", "innocent", tuple(evidence), measures, change, "change of the hit rate")


def _accuse(pair: Pair, facts: Facts, reads: Reads, cohort: _Cohort, measures: dict[str, float]) -> Finding:
    rows = cohort.rows & reads.known[1]
    read, asked, _ = reads.hit.after
    now, then = float(read[rows].sum() / asked[rows].sum()), reads.hit.expected(rows)
    pinned, grew = _break(pair, reads, cohort)
    slopes = [_slope(one.uncached, one.service_s) for one in facts.windows]
    residual = facts.after.prefill_residual[rows]
    residual = float(np.median(residual[np.isfinite(residual)])) if np.isfinite(residual).any() else math.nan
    measures |= {
        "hit_standardised_change": cohort.change.mid,
        "uncached_tokens_added": cohort.lost,
        "break_tokens": pinned,
        "cohort_share": float(rows.mean()),
        "cohort_hit_before": then,
        "cohort_hit_after": now,
        "cohort_cold_before": reads.cold.expected(rows),
        "cohort_cold_after": float(reads.cold.after[0][rows].sum() / max(reads.cold.after[1][rows].sum(), 1.0)),
        "ttft_slope_before": slopes[0],
        "ttft_slope_after": slopes[1],
        "prefill_residual": residual,
    }
    whose = f"{cohort.text} ({measures['cohort_share']:.1%} of the requests)"
    evidence = [
        f"hit rate {then:.1%} -> {now:.1%} for {whose}, like with like: {_points(cohort.change)}",
        f"{about(cohort.lost)} more prompt tokens had to be computed",
    ]
    if not math.isnan(pinned):
        evidence.append(
            f"reads stop at {pinned:,.0f} tokens in {grew[0]:.0%} of these requests, whose prompts have "
            f"{grew[1]:,.0f} at their p90: what follows there changes from request to request"
        )
    if measures["cohort_cold_after"] - measures["cohort_cold_before"] >= LEAST_COLD:
        evidence.append(
            f"found nearly nothing in the cache: {measures['cohort_cold_before']:.1%} -> "
            f"{measures['cohort_cold_after']:.1%} of the prompts of {LONG:,} tokens and more"
        )
    if not math.isnan(residual) and abs(residual) < 0.2:
        evidence.append("prompts with as many uncached tokens take as long as before: the cache, not the hardware")
    kind, more = _dilution(pair, facts, reads, cohort)
    if not kind and not more and math.isnan(pinned):
        more = _eviction(pair, reads, cohort, measures)
    is_elsewhere = kind == "" and bool(more)
    return Finding(
        STEP,
        "" if is_elsewhere else kind or "cache_broken",
        "innocent" if is_elsewhere else "guilty",
        (*evidence, *more),
        measures,
        cohort.change,
        "change of the hit rate",
        since_s=_since(pair, reads, cohort),
        rows=cohort.rows,
        who=cohort.name,
        next_action=_next(kind, cohort, pinned),
    )


def _next(kind: str, cohort: _Cohort, pinned: float) -> str:
    if kind == "cache_diluted":
        return "route by prefix or session, so that a prompt meets the replica that holds its beginning"
    of = f" of {cohort.text}" if cohort.column else ""
    if math.isnan(pinned):
        return f"compare two prompts{of} in a row, token by token: the first that differs ends what a cache can hold"
    if pinned < _BLOCK:
        return f"look at the first line of the system prompt and the tools{of}: something in it differs each time"
    where = f"compare two prompts{of} at token {pinned:,.0f}"
    return f"{where}: a time, an id or a changed tool stands there; move it to the end"


def _since(pair: Pair, reads: Reads, cohort: _Cohort) -> float | None:
    """Find the onset on tokens that the cells would have read, in both windows."""
    tops: list[Floats] = []
    belows: list[Floats] = []
    sides = ((reads.hit.before, np.ones(pair.before.size, bool)), (reads.hit.after, cohort.rows))
    for (read, asked, cell), rows in sides:
        rate = np.nan_to_num(reads.hit.rate)[cell]
        chosen = rows & (rate > 0)
        tops.append(np.where(chosen, rate * asked - read, 0.0))
        belows.append(np.where(chosen, asked, 0.0))
    return onset(pair.windows, (tops[0], tops[1]), (belows[0], belows[1]))


def _break(pair: Pair, reads: Reads, cohort: _Cohort) -> tuple[float, tuple[float, float]]:
    """Find where reads stop, if most stop at one place that they did not stop at before while prompts go on.

    Returns:
        Tokens, NaN where there is no such place; and the share of requests with the long prompt (p90) among them.
    """
    none = (math.nan, (math.nan, math.nan))
    rows = (cohort.rows & reads.known[1], reads.known[0] & _alike(pair, cohort))
    read = (reads.hit.after[0][rows[0]], reads.hit.before[0][rows[1]])
    asked = reads.hit.after[1][rows[0]]
    if not read[0].size:
        return none
    blocks = [np.floor(each / _BLOCK).astype(np.int64) for each in read]
    many = int(max(each.max(initial=0) for each in blocks)) + 1
    shares = [np.bincount(each, minlength=many) / max(each.size, 1) for each in blocks]
    place = int(np.argmax(shares[0]))
    at = blocks[0] == place
    values, counts = np.unique(read[0][at], return_counts=True)
    long = float(np.quantile(asked[at], 0.9))
    grows = long >= 1.2 * np.quantile(asked[at], 0.1)
    if shares[0][place] < _PINNED or shares[1][place] > 0.5 * shares[0][place] or not grows:
        return none
    return float(values[np.argmax(counts)]), (float(shares[0][place]), long)


def _alike(pair: Pair, cohort: _Cohort) -> Mask:
    """Give the cohort's requests before; of a client, of all its versions; all where there is none."""
    labels = {
        "client": lambda: applications(pair.before),
        "application": lambda: applications(pair.before),
        "tenant": lambda: pair.before.tenant,
        "route": lambda: pair.before.route,
        "": lambda: None,
    }[cohort.column]()
    if labels is None:
        return np.ones(pair.before.size, bool)
    after = applications(pair.after) if cohort.column in {"client", "application"} else None
    name = cohort.name if after is None else after.names[int(after.codes[np.argmax(cohort.rows)])]
    mask = labels.codes == labels.names.index(name) if name in labels.names else np.zeros(pair.before.size, bool)
    return mask if mask.any() else np.ones(pair.before.size, bool)


def _dilution(pair: Pair, facts: Facts, reads: Reads, cohort: _Cohort) -> tuple[str, tuple[str, ...]]:
    """Tell a cache spread over more replicas, and caches that restarted replicas lost, from prompts that changed.

    Returns:
        ``cache_diluted`` with its evidence; nothing with evidence where restarted replicas lost all; else nothing.
    """
    if pair.after.replica is None or pair.before.replica is None or cohort.column:
        return "", ()
    count = len(pair.after.replica.names)
    rows = [np.bincount(one.replica, minlength=count) for one in facts.windows]
    active = [each >= 0.2 * each.sum() / max(np.count_nonzero(each), 1) for each in rows]
    counts = [int(each.sum()) for each in active]
    lost = np.bincount(facts.after.replica, -reads.hit.excess, count)
    asked = np.bincount(facts.after.replica, np.where(reads.hit.common, reads.hit.after[1], 0.0), count)
    fall = lost / np.maximum(asked, 1.0)
    fell = fall >= 0.5 * -cohort.change.mid
    old = active[0] & active[1]
    if counts[1] >= _MORE_REPLICAS * counts[0] and old.any() and fell[old].mean() >= _MOST:
        on = f"{int(fell[old].sum())} of the {int(old.sum())} old ones"
        text = (
            f"replicas {counts[0]} -> {counts[1]}, and the hit rate fell on {on}: prompts are spread over more caches"
        )
        return "cache_diluted", (text,)
    if counts[1] > 1 and asked[fell].sum() < 0.5 * asked.sum() and lost[fell].sum() >= HOLDS * lost.sum():
        first: list[int] = np.flatnonzero(fell & (asked > 0))[:3].tolist()
        names = ", ".join(pair.after.replica.names[code] for code in first)
        return "", (f"only the caches of {names} lost tokens: they started empty, which step 5 looks at",)
    return "", ()


def _eviction(pair: Pair, reads: Reads, cohort: _Cohort, measures: dict[str, float]) -> tuple[str, ...]:
    """Tell a cache whose entries were evicted under pressure, which step 4 looks at, from prompts that changed.

    A cohort's too: who comes back late loses more than others, and is named by that alone (I11).
    """
    before, after = pair.before.kv, pair.after.kv
    if before is None or after is None or not np.isfinite(after).any() or not np.isfinite(before).any():
        return ()
    if np.nanmean(after) < _FULLER * np.nanmean(before):
        return ()
    low, high = np.nanquantile(after, [0.2, 0.8])
    kv = np.nan_to_num(after, nan=-1.0)
    empty, full = (reads.hit.change(cohort.rows & at) for at in ((kv >= 0) & (kv <= low), kv >= high))
    if full.high >= empty.low or full.mid > _EVICTED * min(empty.mid, 0.0):
        return ()
    measures["evicted"] = 1.0
    ends = f"{_points(empty)} below {low:.0%} of it, {_points(full)} above {high:.0%}"
    return (f"the loss goes with the KV cache in use, {ends}: evicted for want of room, which step 4 looks at",)


def _slope(uncached: Floats, service_s: Floats) -> float:
    """Give seconds of service an uncached token, between the medians of the lowest and the highest fifth."""
    known = np.isfinite(uncached) & np.isfinite(service_s)
    if known.sum() < 100:
        return math.nan
    tokens, seconds = uncached[known], service_s[known]
    low, high = np.quantile(tokens, [0.2, 0.8])
    one, two = tokens <= low, tokens >= high
    apart = float(np.median(tokens[two]) - np.median(tokens[one]))
    return float(np.median(seconds[two]) - np.median(seconds[one])) / apart if apart > 0 else math.nan


def _points(change: Interval) -> str:
    low, mid, high = (100 * value for value in change)
    return f"{mid:+.1f} pp [{low:+.1f}, {high:+.1f}]"
