"""A plan that names what breaks the prompt cache, where that was looked for."""

from __future__ import annotations

from dataclasses import replace

from tenfold.analysis.cache_breaks import CacheBreaks
from tenfold.levers.prefix_wording import with_break
from tenfold.planning.plan_result import Plan


def with_breaks(plan: Plan, breaks: CacheBreaks) -> Plan:
    """Name the dearest break of the prompt cache in what ``prefix_cache`` says to do first.

    Args:
        plan: The plan.
        breaks: What breaks the cache in the same log.

    Returns:
        The plan; the same where nothing broke.
    """
    dearest = next((one for one in breaks.ranked() if one.label != "ceiling" and (one.cost_pusd or 0) > 0), None)
    if dearest is None:
        return plan
    named = (
        replace(one, advice=with_break(one.advice, dearest)) if one.name == "prefix_cache" else one
        for one in plan.estimates
    )
    return replace(plan, estimates=tuple(named))
