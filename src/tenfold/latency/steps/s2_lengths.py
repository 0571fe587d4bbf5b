"""Step 2, lengths: are prompts or answers longer, or is it that others ask?

Source: serving.md 12, step 2 (reweighting; the between-tenant mix apart from what changed within tenants and routes).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold.latency.cells import Kinds, kinds_of
from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.load import first_attempts
from tenfold.latency.records import Codes, Finding, Floats, Interval, Mask, Pair
from tenfold.latency.tails import draws_of

# A change of mean length that matters, as a log: 10 %.
_LENGTH = 0.10
# A change of the mix: share of requests that are of another kind than before, and what it does to mean length.
_MIX = 0.05
# Two-sided 0.1 % of Student's t with 39 degrees of freedom: several columns are looked at.
_T = 3.56
# Share of the longest that is cut to the length there: a few huge prompts are step 4's.
_CUT = 0.995
# Part of a change that a tenant or route must hold to be named.
_MOST = 0.6
# Kinds of requests named in the evidence.
_NAMED = 3


def look(pair: Pair, facts: Facts, fresh: Mask | None = None) -> tuple[Finding, ...]:
    """Compare lengths within tenants and routes, and the shares of these.

    Args:
        pair: The windows.
        facts: What is known of them.
        fresh: Requests after of clients that the window before did not have: these are step 7's.

    Returns:
        Findings of kind ``input_length``, ``output_length`` and ``mix``; ``measures`` holds log changes.
    """
    kinds = kinds_of(pair)
    use = [first_attempts(window) & window.judged for window in pair.windows]
    if fresh is not None:
        use[1] &= ~fresh
    if not _meet(kinds, (use[0], use[1])):
        return (Finding(step=2, kind="", status="innocent", evidence=(_APART,), next_action=""),)
    blocks = _blocks(pair, facts)
    found: list[Finding] = []
    looked: list[str] = []
    for name, columns in (
        ("input", (pair.before.input, pair.after.input)),
        ("output", (pair.before.output, pair.after.output)),
    ):
        within, mix = _changes(columns, kinds, blocks, (use[0], use[1]))
        word = "prompts" if name == "input" else "answers"
        sentence = (
            f"Mean length of {word} within tenants and routes: {_percent(within)}; by the mix of these: "
            f"{np.expm1(mix.mid):+.1%}."
        )
        looked.append(sentence)
        if within.excludes_zero and abs(within.mid) >= _LENGTH:
            who, told = _who(pair, columns, (use[0], use[1]))
            found.append(
                Finding(
                    step=2,
                    kind=f"{name}_length",
                    status="guilty",
                    evidence=(sentence, told),
                    measures={"within_log_change": within.mid, "mix_log_change": mix.mid},
                    effect=within,
                    effect_name=f"log change of mean {name} tokens within tenants and routes",
                    who=who,
                    next_action=_NEXT[name],
                )
            )
    moved = _mix(pair, kinds, blocks, (use[0], use[1]))
    return (*found, *moved) or (Finding(step=2, kind="", status="innocent", evidence=tuple(looked), next_action=""),)


_APART = "No tenant and route is in both windows: how lengths changed within them, or by their mix, cannot be told."
_NEXT = {
    "input": "Find what changed the prompts: diff the request builder and its truncation for the route named.",
    "output": "Find what changed the answers: diff reasoning settings, max_tokens and the prompt of the route named.",
    "mix": "Nobody became slower: plan capacity for the new mix, or give the growing tenant a pool of its own.",
}


def _meet(kinds: Kinds, use: tuple[Mask, Mask]) -> bool:
    before, after = (np.unique(kind[used]) for kind, used in zip((kinds.before, kinds.after), use, strict=True))
    return bool(np.isin(before, after).any())


def _blocks(pair: Pair, facts: Facts) -> list[tuple[Codes, Codes]]:
    """Give the blocks that are drawn: slices of time, and sessions dealt out where the log has them.

    A session's turns are alike, and some are long: slices of time alone would count them as so many requests.
    """
    blocks = [(facts.before.slice, facts.after.slice)]
    sessions = pair.before.session, pair.after.session
    if sessions[0] is not None and sessions[1] is not None:
        before, after = (
            np.where(one.codes >= 0, one.codes, np.arange(one.codes.size)) % SLICES
            for one in sessions
            if one is not None
        )
        blocks.append((before.astype(np.int32), after.astype(np.int32)))
    return blocks


def _changes(
    columns: tuple[Floats, Floats], kinds: Kinds, blocks: Sequence[tuple[Codes, Codes]], use: tuple[Mask, Mask]
) -> tuple[Interval, Interval]:
    """Give log changes of the mean, within kinds and by the mix of kinds; the wider interval of all kinds of blocks."""
    everything = np.concatenate([column[used & np.isfinite(column)] for column, used in zip(columns, use, strict=True)])
    if everything.size == 0:
        return Interval(0.0, 0.0, 0.0), Interval(0.0, 0.0, 0.0)
    cut = float(np.quantile(everything, _CUT))
    drawn = [_drawn_changes(columns, kinds, block, use, cut) for block in blocks]
    within, mix = (_widest([_spread(each[at]) for each in drawn]) for at in (0, 1))
    return within, mix


def _widest(intervals: Sequence[Interval]) -> Interval:
    return max(intervals, key=lambda one: one.high - one.low)


def _drawn_changes(
    columns: tuple[Floats, Floats], kinds: Kinds, blocks: tuple[Codes, Codes], use: tuple[Mask, Mask], cut: float
) -> tuple[Floats, Floats]:
    """Give the changes of the sample, in the first place, and of every draw."""
    many = len(kinds.names)
    sums: list[Floats] = []
    for column, used, kind, block in zip(columns, use, (kinds.before, kinds.after), blocks, strict=True):
        rows = used & np.isfinite(column)
        place = kind[rows] * SLICES + block[rows]
        shape = (many, SLICES)
        counts = np.bincount(place, minlength=many * SLICES).reshape(shape)
        tokens = np.bincount(place, np.minimum(column[rows], cut), many * SLICES).reshape(shape)
        sums.append(np.stack([counts, tokens]).astype(np.float64))
    drawn = [np.vstack([np.ones((1, SLICES)), draws_of(SLICES, stream=at)]) for at in (0, 1)]
    (count0, total0), (count1, total1) = (
        [part @ draw.T for part in each] for each, draw in zip(sums, drawn, strict=True)
    )
    mean0 = np.divide(total0, count0, where=count0 > 0, out=np.zeros_like(total0))
    # kinds that one of the windows lacks have no lengths to compare
    common = (count0 > 0) & (count1 > 0)
    mixed = (count1 * mean0 * common).sum(axis=0) / np.maximum((count1 * common).sum(axis=0), 1)
    now = (total1 * common).sum(axis=0) / np.maximum((count1 * common).sum(axis=0), 1)
    base = total0.sum(axis=0) / np.maximum(count0.sum(axis=0), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.log(now / mixed), np.log(mixed / base)
    # a draw without a kind that both windows have tells nothing
    within, mix = (np.where(np.isfinite(each), each, 0.0) for each in changes)
    return within, mix


def _spread(drawn: Floats) -> Interval:
    wide = _T * float(np.std(drawn[1:], ddof=1))
    return Interval(float(drawn[0]) - wide, float(drawn[0]), float(drawn[0]) + wide)


def _percent(change: Interval) -> str:
    """Write a log change as a percentage with its interval."""
    low, mid, high = (np.expm1(end) for end in change)
    return f"{mid:+.1%} [{low:+.1%}, {high:+.1%}]"


def _mix(
    pair: Pair, kinds: Kinds, blocks: Sequence[tuple[Codes, Codes]], use: tuple[Mask, Mask]
) -> tuple[Finding, ...]:
    if len(kinds.names) <= 2:  # one kind, and the others, which nobody is
        return ()
    many = len(kinds.names)
    shares = [
        np.bincount(kind[used], minlength=many) / max(int(used.sum()), 1)
        for kind, used in zip((kinds.before, kinds.after), use, strict=True)
    ]
    moved = float(np.abs(shares[1] - shares[0]).sum() / 2)
    columns = {"prompts": (pair.before.input, pair.after.input), "answers": (pair.before.output, pair.after.output)}
    changes = {word: _changes(both, kinds, blocks, use)[1] for word, both in columns.items()}
    telling = {word: one for word, one in changes.items() if one.excludes_zero and abs(one.mid) >= _MIX}
    if moved < _MIX or not telling:
        return ()
    word, change = max(telling.items(), key=lambda item: abs(item[1].mid))
    order = np.argsort(-np.abs(shares[1] - shares[0]), kind="stable")[:_NAMED]
    told = "; ".join(f"{kinds.names[at]}: {shares[0][at]:.1%} to {shares[1][at]:.1%} of requests" for at in order)
    return (
        Finding(
            step=2,
            kind="mix",
            status="guilty",
            evidence=(
                f"{moved:.1%} of requests are of another tenant or route than before ({told}).",
                f"By that alone, at the lengths that each had, mean length of {word} changes by {_percent(change)}.",
            ),
            measures={"moved_share": moved, "mix_log_change": change.mid},
            effect=change,
            effect_name="log change of mean tokens by the mix of tenants and routes",
            who=_growing(pair, use) or kinds.names[int(np.argmax(shares[1] - shares[0]))],
            next_action=_NEXT["mix"],
        ),
    )


def _growing(pair: Pair, use: tuple[Mask, Mask]) -> str:
    """Name the tenant whose share grew, if one took most of what moved."""
    old, new = pair.before.tenant, pair.after.tenant
    if old is None or new is None:
        return ""
    many = len(new.names)
    shares = [
        np.bincount(labels.codes[used & (labels.codes >= 0)], minlength=many) / max(int(used.sum()), 1)
        for labels, used in zip((old, new), use, strict=True)
    ]
    grown = np.maximum(shares[1] - shares[0], 0.0)
    return new.names[int(np.argmax(grown))] if grown.max() >= _MOST * grown.sum() > 0 else ""


def _who(pair: Pair, columns: tuple[Floats, Floats], use: tuple[Mask, Mask]) -> tuple[str, str]:
    """Name the route or tenant that the change lies with, if one holds most of it; else the one that adds most."""
    best: tuple[float, str, str, float, float] | None = None
    for word, before, after in (
        ("route", pair.before.route, pair.after.route),
        ("tenant", pair.before.tenant, pair.after.tenant),
    ):
        if before is None or after is None:
            continue
        many = len(after.names) + 1
        means: list[Floats] = []
        counts: Floats = np.zeros(many)
        for column, used, labels in zip(columns, use, (before, after), strict=True):
            rows = used & np.isfinite(column)
            counts = np.bincount(labels.codes[rows] + 1, minlength=many).astype(np.float64)
            sums = np.bincount(labels.codes[rows] + 1, column[rows], many)
            means.append(np.divide(sums, counts, where=counts > 0, out=np.zeros(many)))
        added = np.where((means[0] > 0) & (means[1] > 0), (means[1] - means[0]) * counts, 0.0)
        added[0] = 0.0  # those that name none
        whole = float(np.abs(added).sum())
        at = int(np.argmax(np.abs(added)))
        if whole > 0 and (best is None or abs(added[at]) / whole > best[0]):
            name = after.names[at - 1]
            best = abs(float(added[at])) / whole, word, name, float(means[0][at]), float(means[1][at])
    if best is None:
        return "", "No tenant or route is named: who it is cannot be told."
    share, word, name, old, new = best
    told = f"{word} {name}: {old:,.0f} to {new:,.0f} tokens on average ({share:.0%} of the change)."
    if share < _MOST:
        return "", f"It is spread over tenants and routes; most is of {told}"
    return name, f"It lies with {told}"
