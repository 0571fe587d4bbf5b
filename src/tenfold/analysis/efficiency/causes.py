"""Waste and its causes, in the order in which one is chosen for each request."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

Label: TypeAlias = Literal["exact", "ceiling"]


class Cause(NamedTuple):
    """A kind of waste.

    Args:
        name: Its key.
        label: ``exact`` where the cost of what is counted was wasted, ``ceiling`` where at most it was.
        title: In words.
        needs: Columns that tell, for people.
    """

    name: str
    label: Label
    title: str
    needs: str


CAUSES = (
    Cause("error", "exact", "failed and billed", "status"),
    Cause("retry", "exact", "asked again", "attempt or retry_of"),
    Cause("truncated", "exact", "cut off at the limit", "finish_reason"),
    Cause("duplicate", "ceiling", "same question again", "prompt_hash and params_hash"),
)


class Waste(NamedTuple):
    """What one cause wasted.

    Args:
        cause: The cause.
        known: Billable requests of which the log tells whether they bear the mark.
        requests: Those that bear it.
        unpriced_requests: Those of them without a price: in no amount.
        pusd: Cost of those that have one; None where there are requests and none has.
        once_requests: Requests of which this is the first cause, so that causes add up.
        once_unpriced: Those of them without a price.
        once_pusd: Cost of those that have one; None where there are requests and none has.
        share: ``pusd`` over the spend; None where one of them is unknown or the spend is zero.
        once_share: ``once_pusd`` over the spend.
    """

    cause: Cause
    known: int
    requests: int
    unpriced_requests: int
    pusd: int | None
    once_requests: int
    once_unpriced: int
    once_pusd: int | None
    share: Fraction | None
    once_share: Fraction | None


def marks_sql() -> str:
    """Write the sums of every mark for ``efficiency_sums.sql``.

    Returns:
        SQL of a list of columns.
    """
    return ",\n  ".join(
        f"""cast(sum(case when tells_{name} then 1 else 0 end) as bigint) as {name}_known,
  cast(sum(case when is_{name} then 1 else 0 end) as bigint) as {name}_requests,
  cast(sum(case when is_{name} and not is_priced then 1 else 0 end) as bigint) as {name}_unpriced,
  coalesce(sum(case when is_{name} then cost_pusd end), 0) as {name}_pusd,
  cast(sum(case when cause = '{name}' then 1 else 0 end) as bigint) as {name}_once_requests,
  cast(sum(case when cause = '{name}' and not is_priced then 1 else 0 end) as bigint) as {name}_once_unpriced,
  coalesce(sum(case when cause = '{name}' then cost_pusd end), 0) as {name}_once_pusd"""
        for name in (cause.name for cause in CAUSES)
    )
