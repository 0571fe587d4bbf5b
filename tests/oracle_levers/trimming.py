"""Lever 6: shorter prompts and outputs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from oracle_levers.core import (
    Bill,
    Pricer,
    Request,
    Table,
    Version,
    count,
    end_of,
    in_where,
    number,
    parts,
    rhe,
    with_parts,
)


def apply(bill: Bill, pricer: Pricer, table: Table, scenario: str, requests: list[Request]) -> Bill:
    """Each class of input loses the same share; output takes its ratio, then its cap."""
    sample = sampled(table, requests)
    made = Bill([], bill.fees, dict(bill.touched))
    for one in bill.versions:
        after = one
        # The rule: "trim, prefix_cache, batch_api leave such a request alone" (its cost is known from the evals)
        if one.fixed is None and in_where(table, one.request):
            after = trimmed(one, table, scenario, sample)
            if after == one or not pricer.may_become(one, [after]):
                after = one
            else:
                made.touch("trim", one.origin)
        made.versions.append(after)
    return made


def trimmed(one: Version, table: Table, scenario: str, sample: dict[Any, tuple[Fraction | None, Fraction]]) -> Version:
    """One call after the edit."""
    request = one.request
    if request.get("input_tokens") is None or request.get("output_tokens") is None:
        return one
    measured = sample.get(request.get("feature"), sample.get(None))
    remove = end_of(table.get("input_remove_ratio", 0), scenario)
    ratio = end_of(table.get("output_ratio", 1), scenario, low_is_largest=True)
    if measured is not None:
        kept, ratio = measured
        remove = remove if kept is None else 1 - kept
    # The rule: "removed per class = rhe(class x ratio) for uncached text, read, write (long part likewise, never more
    # than write)"
    text, read, write, long = (part - rhe(part * remove) for part in parts(request))
    edited = with_parts(request, text, read, write, min(long, write))
    # The rule: "output' = rhe(output x ratio) where finish_reason <> 'length' or is NULL; then min(output',
    # output_cap)"
    ratio = Fraction(1) if request.get("finish_reason") == "length" else ratio
    output = rhe(count(request, "output_tokens") * ratio)
    if table.get("output_cap") is not None:
        output = min(output, int(table["output_cap"]))
    edited["output_tokens"] = output
    if request.get("reasoning_tokens") is not None:
        edited["reasoning_tokens"] = min(rhe(count(request, "reasoning_tokens") * ratio), output)
    return one.changed(edited, blocks=cut(one, edited, table))


def cut(one: Version, edited: Request, table: Table) -> tuple[Any, ...]:
    """The rule: "tail: the edited prompt keeps the first floor(new input / B) blocks; head: the first ones are
    dropped".
    """
    size = one.request.get("prefix_block_tokens")
    if not size or not one.blocks or edited["input_tokens"] == one.request["input_tokens"]:
        return one.blocks
    kept = min(len(one.blocks), edited["input_tokens"] // size)
    dropped = len(one.blocks) - kept
    if table.get("cut", "tail") == "head":
        return tuple((dropped, block) for block in one.blocks[dropped:])
    return one.blocks[:kept]


def sampled(table: Table, requests: list[Request]) -> dict[Any, tuple[Fraction | None, Fraction]]:
    """The rule: "the ratio is sum(after)/sum(before) over sampled requests not truncated, by feature where named"."""
    by_id = {request.get("request_id"): request for request in requests}
    sums: dict[Any, list[int]] = {}
    has_input = True
    for row in table.get("evals") or ():
        before = by_id[row["request_id"]]
        if "length" in (before.get("finish_reason"), row.get("finish_reason")):
            continue
        total = sums.setdefault(row.get("feature"), [0, 0, 0, 0])
        has_input = has_input and row.get("input_tokens") is not None
        for place, value in enumerate(
            (row["output_tokens"], before["output_tokens"], row.get("input_tokens") or 0, before["input_tokens"])
        ):
            total[place] += int(value)
    return {
        feature: (number(b) / number(c) if has_input else None, number(a) / number(d))
        for feature, (a, d, b, c) in sums.items()
    }
