"""Lever 5: as many requests at once as the service level leaves, on as few replicas as the busiest hour takes."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal, cast

from tenfold.errors import AssumptionError
from tenfold.levers.base import Assumed, Assumption, Bill, Scenario
from tenfold.levers.hosting import HostingLever, Moved, label
from tenfold.levers.sites import Change, Place
from tenfold.levers.tally import fact
from tenfold.levers.values import Range, count, flag, share
from tenfold.money import shown
from tenfold.serving.breakeven import UTILIZATION
from tenfold.serving.capacity import replicas_needed
from tenfold.serving.replanning import Hosting, rehosted
from tenfold.serving.roofline import step_cost


class ContinuousBatching(HostingLever):
    """Fuller batches, fewer replicas."""

    name = "continuous_batching"
    number = 5
    assumptions = (
        Assumption("max_batch", None, "most requests at once in a replica",
                   "the pool's max_batch, else the engine's own cap", conservative=False, read=count),
        Assumption("utilization", Range(*[UTILIZATION] * 3), "share of capacity that the busiest hour may take",
                   "0.6: bursts within the hour, and the queue that grows near 1", conservative=True, read=share),
        Assumption("min_replicas", 2, "replicas at least", "two: one may fail, or be restarted",
                   conservative=True, read=count),
        Assumption("autoscale", False, "true: replicas are started and stopped by the hour",
                   "as many as the busiest hour takes, all the time", conservative=True, read=flag),
    )  # fmt: skip
    meets: tuple[str, ...] = ("quantize", "procure", "speculate", "prefix_cache")
    effort_days = Decimal(3)
    risk: Literal["low", "medium", "high"] = "medium"
    rule_of_thumb = (
        "2-10x tokens a GPU: true of an engine that ran one request at a time; where batches are full it is 1x. It is "
        "money only where replicas go, and every token then takes longer"
    )
    slo_effect = "time per output token rises with the batch, up to the limit that slo.toml states"
    undo = "Start the replicas again; nothing else depends on their number."
    no_table = "write [continuous_batching], with max_batch and utilization where the defaults do not suit"

    def change(self, assumed: Assumed) -> Change:
        """Say what is changed of a place: its replicas follow the busiest hour.

        Args:
            assumed: The lever's assumptions.

        Returns:
            Function from a place and a scenario to what is changed there.

        Raises:
            AssumptionError: The figures cannot be.
        """
        cap = cast("int | None", assumed.values["max_batch"])
        least = cast("int", assumed.values["min_replicas"])
        if cap == 0 or not least or not assumed.at("low").number("utilization"):
            raise AssumptionError("[continuous_batching]: max_batch, min_replicas and utilization must be above 0")

        def changed(_place: Place, scenario: Scenario) -> Hosting:
            part = float(assumed.at(scenario).number("utilization"))
            return Hosting(utilization=part, follows=assumed.values["autoscale"] is True, least=least, cap=cap)

        return changed

    def refusal(self, place: Place, bill: Bill, assumed: Assumed) -> str:
        """Say why a place cannot be changed: it has no replica to spare.

        Args:
            place: The place.
            bill: The log's own bill.
            assumed: The lever's assumptions.

        Returns:
            The reason; empty where it can.
        """
        reason = super().refusal(place, bill, assumed)
        if reason or place.site is None:
            return reason
        after = rehosted(place.site, self.change(assumed)(place, "mid"))
        if after is None or after.replicas <= place.site.replicas:
            return ""
        limit = "" if place.site.tpot_slo_s is None else f" at {place.site.tpot_slo_s * 1000:g} ms an output token"
        return (
            f"its busiest hour takes {after.replicas} replicas{limit}, where {place.site.replicas} run: the fleet is "
            "short of that, so there is nothing to give back"
        )

    def facts(self, moved: Moved, assumed: Assumed) -> tuple[dict[str, Any], ...]:
        """Say how full batches are, where fuller ones stop paying, and what they take from the prefix cache.

        Args:
            moved: The place.
            assumed: The lever's assumptions.

        Returns:
            Facts.
        """
        place, site, now = moved.place, moved.place.site, moved.before.deployment
        assert site is not None
        cost = step_cost(now)
        demand = place.hosted.demand
        batch = moved.after.capacity.batch
        taken = batch * now.kv_bytes(site.load.resident_tokens) / max(now.pool_bytes, 1)
        step, laws = "serving.capacity", "fleet_busy"
        found = [
            fact(label(place, "batch_measured"), f"{place.hosted.batch:.2f}",
                 "requests under way in a busy replica, by Little's law" if demand.busy_s else
                 "requests under way, assumed: no durations in this log", laws),
            fact(label(place, "busiest_hour_tokens_per_s"), f"{max(site.hourly, default=0):.1f}",
                 "output tokens/s", laws),
            fact(label(place, "replica_tokens_per_s"), f"{moved.before.capacity.pace.tokens_per_s * site.scale:.1f}",
                 "output tokens/s at the largest batch, modelled" + " and scaled to the log" * (site.scale != 1),
                 step),
            fact(label(place, "replicas_by_demand"), _by_demand(moved, assumed),
                 f"replicas that the busiest hour takes; at least {assumed.values['min_replicas']} stay", step),
            fact(label(place, "ridge_batch"), f"{cost.weights_s / cost.token_s:.0f}",
                 "requests at which multiplying takes as long as reading the weights", "serving.roofline"),
            fact(label(place, "kv_share_of_batches"), f"{taken:.2f}",
                 "of the KV pool that such batches fill; the prefix cache lives in the rest", "serving.memory"),
        ]  # fmt: skip
        waste = _static_waste(moved.bill, place, max(2, round(place.hosted.batch)))
        if waste is not None:
            found.append(fact(label(place, "static_batching_waste"), f"{waste:.2f}",
                              "share of slots that batches of that size would waste if they waited for their longest "
                              "answer", "lever_base"))  # fmt: skip
        return tuple(found)

    def first_action(self, moved: Moved) -> str:
        """Say what to do first at the place that saves most.

        Args:
            moved: The place.

        Returns:
            One sentence.
        """
        able = moved.after.capacity
        return (
            f"Serve {moved.place.name} {moved.swap}, with at most "
            f"{able.batch} at once (--max-num-seqs {able.batch}): {shown(moved.saved_pusd)} of this window's bill; "
            f"time per output token may rise to {moved.tpot_ms(moved.after):.0f} ms."
        )


def _by_demand(moved: Moved, assumed: Assumed) -> int:
    """Count the replicas that the busiest hour alone asks for."""
    site = moved.place.site
    assert site is not None
    each = moved.before.capacity.pace.tokens_per_s * site.scale
    return replicas_needed(max(site.hourly, default=0.0), each, float(assumed.number("utilization")), 0)


def _static_waste(bill: Bill, place: Place, batch: int) -> float | None:
    """Give what static batches waste: 1 - mean / expected longest of ``batch`` answers of this log."""
    keys = ", ".join(map(str, place.keys))
    rows = bill.session.engine.fetch(
        "select output_tokens as tokens, cast(count(*) as bigint) as n from lever_base "
        f"where is_billed and output_tokens > 0 and price_key in ({keys}) group by output_tokens order by tokens"
    ).rows()
    total = sum(number for _, number in rows)
    if not total:
        return None
    mean = sum(tokens * number for tokens, number in rows) / total
    shares = [0.0]
    for _, number in rows:
        shares.append(shares[-1] + number / total)
    longest = sum(
        tokens * (above**batch - below**batch)
        for (tokens, _), (below, above) in zip(rows, pairwise(shares), strict=True)
    )
    return 1 - mean / longest


LEVER = ContinuousBatching()
