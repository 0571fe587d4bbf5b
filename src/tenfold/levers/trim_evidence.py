"""What the trim lever says for itself: what goes, its worth by class, what truncation wastes, what is fixed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tenfold import display
from tenfold.analysis.break_evens import Rates, compaction_calls
from tenfold.display import number, percent
from tenfold.levers.base import Advice, Assumed, Bill, Label, Look, Status
from tenfold.levers.evals import Evals
from tenfold.levers.matching import matches_none
from tenfold.levers.pairs import Measured, Pairs, mean_scores, score_text
from tenfold.levers.repricing import filled_columns
from tenfold.levers.tally import MOVED, Tally, fact
from tenfold.levers.values import Range
from tenfold.money import shown, usd_text
from tenfold.store import steps

# A block is fixed text where more other requests of the feature have it than chance would give.
SHARED_BY = 9
# Features whose fixed text is listed, those with the most of it first.
_MOST_FEATURES = 10
_FOUND = "lever_trim_found"
_FIXED = "lever_trim_fixed"
_JUDGED = "lever_trim_judged"
_FACTS = {
    "vetoed": "requests whose shorter answers do not reach min_quality in the sample, or have no score",
    "unpriced": "requests without a price now: left as they are",
    "no_price": "requests without a price once shortened: left as they are",
    "not_billed": "requests that are not billed",
}


def found(
    bill: Bill, assumed: Assumed, counted: Tally, sample: Pairs | None, evals: Evals | None, edited: str, judged: str
) -> Look:
    """Say what shorter prompts and answers come to.

    Args:
        bill: The log's own bill.
        assumed: The assumptions.
        counted: What the lever did on its own, counted.
        sample: The paired sample, if any.
        evals: Its file.
        edited: View of the touched requests with their new counts.
        judged: View of what was judged.

    Returns:
        Status, facts and advice.
    """
    status, reason = _status(bill, assumed, counted)
    sums = _sums(bill, edited)
    evidence = [
        *_money(counted, sums),
        *_classes(counted, sums),
        *_truncated(sums),
        *_later(sums),
        *_head(sums),
        *_sampled(sample, evals),
        *_fixed(bill, judged),
        *counted.fates(_FACTS, _JUDGED),
    ]
    return Look(
        status,
        reason,
        _label(assumed, counted, sample),
        int(sums["changed_pusd"]),
        None,
        tuple(evidence),
        _advice(counted, assumed, sums),
        applies=status == "ok",
        left_out=counted.left_out("vetoed", "left out by the quality that is asked for"),
    )


def _status(bill: Bill, assumed: Assumed, counted: Tally) -> tuple[Status, str]:
    if counted.requests(MOVED):
        return "ok", ""
    if not counted.requests():
        return "nothing_eligible", matches_none(bill.session.engine, assumed.where)
    if counted.requests("vetoed"):
        few = f"{counted.requests('vetoed'):,} requests in its where"
        return "vetoed", f"the sample's scores do not reach min_quality for the {few}"
    largest = max(_FACTS, key=counted.requests)
    counts = f"of {counted.requests():,} requests in its where, none can be shortened"
    return "nothing_eligible", f"{counts}; {counted.requests(largest):,} are {_FACTS[largest]}"


def _label(assumed: Assumed, counted: Tally, sample: Pairs | None) -> Label:
    """Call the figure measured only where a sample stands for every request that was changed."""
    if sample is None or assumed.values["output_cap"] is not None:
        return "modelled"
    groups = [sample.of(feature) for feature in set(counted.frame.filter(fate=MOVED)["feature"])]
    removed = assumed.values["input_remove_ratio"]
    stays = isinstance(removed, Range) and not any(removed)
    is_whole = all(one is not None and one.output is not None and (one.input is not None or stays) for one in groups)
    return "measured" if is_whole else "modelled"


def _sums(bill: Bill, edited: str) -> Mapping[str, Any]:
    has_reasoning = any(meter.name == "reasoning" for meter in bill.session.meters)
    own = "case when p.rate_reasoning >= 0 then p.rate_reasoning else coalesce(p.rate_output, 0) end"
    rate = own if has_reasoning else "coalesce(p.rate_output, 0)"
    return bill.session.engine.fetch(steps.filled(_FOUND, edited=edited, reasoning_rate=rate)).row(0, named=True)


def _money(counted: Tally, sums: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        fact("requests_in_where", counted.requests(), "requests", "lever_log"),
        fact("requests_shortened", sums["changed"], "requests", _FOUND),
        fact("cost_now_usd", usd_text(counted.total("now_pusd", MOVED)), "USD", "priced"),
        fact("cost_moved_usd", usd_text(counted.total("then_pusd", MOVED)), "USD", "priced"),
    ]


def _classes(counted: Tally, sums: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Value what goes by the class it was billed in, and beside it as if all of it were uncached."""
    words = {
        "uncached": "uncached input",
        "reads": "cached reads",
        "shorts": "cache writes",
        "longs": "longer-lived cache writes",
        "output": "output",
    }
    facts: list[dict[str, Any]] = []
    for name, what in words.items():
        if sums[name]:
            key = {"shorts": "writes", "longs": "long_writes"}.get(name, name)
            facts += [
                fact(f"removed_{key}_tokens", sums[name], f"tokens of {what} removed", _FOUND),
                fact(f"removed_{key}_usd", usd_text(int(sums[f"{name}_pusd"])), "USD at the rate billed", _FOUND),
            ]
    worth = sum(int(sums[f"{name}_pusd"]) for name in words if name != "output")
    if sums["uncached"] or sums["reads"] or sums["shorts"] or sums["longs"]:
        naive = int(sums["list_pusd"])
        facts += [
            fact("removed_input_usd", usd_text(worth), "USD, each token at the class it was billed in", _FOUND),
            fact("removed_input_list_usd", usd_text(naive), "USD if all were uncached: not what is saved", _FOUND),
        ]
        if worth:
            times = f"{number(Fraction(naive, worth), 2)}"
            facts.append(fact("list_overstates", times, "times: that naive figure over the true one", _FOUND))
    saved = counted.total("now_pusd", MOVED) - counted.total("then_pusd", MOVED)
    rest = saved - worth - int(sums["output_pusd"])
    if rest:
        what = "USD: whole requests re-priced, as they fall below (or rise above) a context threshold"
        facts.append(fact("band_change_usd", usd_text(rest), what, "priced"))
    return facts


def _truncated(sums: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not sums["truncated"]:
        return []
    what = "requests whose answers ended at their limit: not scaled, as their length is unknown"
    waste = "USD they cost: answers cut off are waste, no saving"
    return [
        fact("truncated_requests", sums["truncated"], what, _JUDGED),
        fact("truncated_usd", usd_text(int(sums["truncated_pusd"])), waste, "priced"),
    ]


def _later(sums: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Say what shorter answers would save again as input of later turns: beside the saving, not in it."""
    if not sums["again"]:
        return []
    what = "tokens of removed answers times later turns of their session, if each sends them again: not in the saving"
    return [
        fact("later_turn_tokens", sums["again"], what, _FOUND),
        fact("later_turn_usd", usd_text(int(sums["again_pusd"])), "USD of those at the cached rate", _FOUND),
    ]


def _head(sums: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Say what a cut at the head of a cached prompt rewrites once, and when that has paid."""
    requests, tokens = sums["cached_requests"], sums["kept_reads"]
    if not requests:
        return []
    rates = Rates(*(Fraction(int(sums[f"kept_{name}_pusd"]), tokens) for name in ("uncached", "read", "rewrite")))
    once = round(Fraction(int(sums["kept_rewrite_pusd"]) - int(sums["kept_read_pusd"]), requests))
    calls = compaction_calls(tokens, sums["cached_removed"], rates, rewrite=rates.write)
    what = "USD once for each cached prompt that is cut at its head: what stays behind the cut is sent anew"
    facts = [fact("head_cut_rewrite_usd", usd_text(once), what, _FOUND)]
    if calls is not None:
        what = "later calls of each such prompt until that has paid"
        facts.append(fact("head_cut_break_even_calls", number(calls, 1), what, "analysis.break_evens"))
    return facts


def _sampled(sample: Pairs | None, evals: Evals | None) -> list[dict[str, Any]]:
    if sample is None or evals is None:
        return []
    facts = [fact("sample_rows", sample.rows, f"rows of {evals.file.name}", "lever_pairs")]
    if sample.unpaired:
        what = "rows without one billed request of that request_id: in no ratio"
        facts.append(fact("sample_unpaired", sample.unpaired, what, "lever_pairs"))
    for group in sample.groups:
        for name, measured in (("output_ratio", group.output), ("input_ratio", group.input)):
            if measured is not None:
                key = name if group.feature is None else f"{name} of {group.feature}"
                facts.append(fact(key, f"{float(measured.ratio):.4f}", _interval(measured), "lever_pairs"))
    for feature, score in sorted(mean_scores(evals).items(), key=lambda one: one[0] or ""):
        key = "mean_score" if feature is None else f"mean_score of {feature}"
        facts.append(fact(key, score_text(score), "score of the shorter answers", "lever_pairs"))
    return facts


def _interval(measured: Measured) -> str:
    found = measured.sample
    rest = f"{found.pairs:,} pairs"
    if found.left_out:
        rest += f", {found.left_out:,} truncated ones left out"
    if found.low is None or found.high is None:
        return f"after / before; {rest}; too few to bound it"
    return f"after / before, 95 % interval {found.low:.4f} to {found.high:.4f}; {rest}"


def _fixed(bill: Bill, judged: str) -> list[dict[str, Any]]:
    """Say how much of the prompts is text that every request of the feature repeats: instructions and examples."""
    if not filled_columns(bill, ["prefix_hashes"])["prefix_hashes"]:
        return []
    sql = steps.filled(_FIXED, judged=judged, others=str(SHARED_BY))
    rows = sorted(
        bill.session.engine.fetch(sql).rows(named=True), key=lambda row: (-row["fixed_tokens"], row["feature"] or "")
    )
    what = f"of the input is leading blocks that at least {SHARED_BY} other requests of the feature begin with"
    return [
        fact(
            f"fixed_text of {row['feature'] or 'no feature'}",
            percent(Fraction(row["fixed_tokens"], row["input_tokens"]), 1),
            f"{what} ({row['requests']:,} requests)",
            _FIXED,
        )
        for row in rows[:_MOST_FEATURES]
        if row["input_tokens"]
    ]


def _advice(counted: Tally, assumed: Assumed, sums: Mapping[str, Any]) -> Advice:
    moved = counted.by_saving()
    if not moved:
        return Advice("Nothing to do first: no request can be shortened.", "Nothing to verify.", "Nothing to undo.")
    name, requests, saving = moved[0]
    total = counted.total("now_pusd", MOVED) - counted.total("then_pusd", MOVED)
    part = f", {percent(Fraction(saving, total))} of this saving" if 0 < saving <= total else ""
    gone = sums["uncached"] + sums["reads"] + sums["shorts"] + sums["longs"]
    ways = [
        "cut its prompts at the " + str(assumed.values["cut"]) if gone > 0 else "",
        "ask for shorter answers" if sums["output"] > 0 else "",
    ]
    how = " and ".join(way for way in ways if way) or "leave it as it is: nothing gets shorter"
    return Advice(
        f"In {name}, {how}: {display.counted(requests, 'request')}, {shown(saving)}{part}.",
        f"Keep one in ten of {name} on the long version for two weeks; compare tokens, scores and cost a request.",
        f"Put the longer prompt and limit of {name} back; a cached prompt is then written once more.",
    )
