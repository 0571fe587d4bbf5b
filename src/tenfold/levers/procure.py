"""Lever 9: the GPU that fits the traffic, reserved as far as it is busy, and spot for what may wait."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, cast

from tenfold.errors import AssumptionError, NotEvaluable, TenfoldError
from tenfold.levers.base import Assumed, Assumption, Bill, Judged, Look, Scenario
from tenfold.levers.hosting import HostingLever, Moved, label
from tenfold.levers.repricing import mark_of
from tenfold.levers.sites import Change, Place
from tenfold.levers.tally import fact
from tenfold.levers.values import Predicate, Range, amount, choice, predicate, share, text
from tenfold.money import shown
from tenfold.serving.gpu_prices import COMMITMENTS
from tenfold.serving.gpu_terms import Terms, offer
from tenfold.serving.replanning import Hosting
from tenfold.serving.specs import gpu

_RESERVED = tuple(one for one in COMMITMENTS if one.startswith("reserved"))
_PRICES = "today's price times the ratio in lists of pricing/gpu_prices.toml that have both, else those lists"


class Procure(HostingLever):
    """Other GPUs, other terms."""

    name = "procure"
    number = 9
    assumptions = (
        Assumption("gpu", None, "GPU of pricing/gpus.toml", "today's", conservative=True, read=text),
        Assumption("commitment", None, f"on_demand, {', '.join(_RESERVED)}", "today's terms, on demand for "
                   "another GPU", conservative=True, read=choice("on_demand", *_RESERVED)),
        Assumption("spot_where", None, "predicate of requests that may run on GPUs that can be taken away",
                   "none may", conservative=True, read=predicate),
        Assumption("spot_rework_ratio", Range(*[Decimal("0.1")] * 3), "share of spot work that is done twice",
                   "no provider publishes it", conservative=False, read=share, falls=True),
        Assumption("usd_per_hour", None, "USD for a GPU and hour on demand", f"{_PRICES}; today's for today's GPU",
                   conservative=False, read=amount),
        Assumption("reserved_usd_per_hour", None, "USD for a reserved GPU and hour, used or not", _PRICES,
                   conservative=False, read=amount),
        Assumption("spot_usd_per_hour", None, "USD for a GPU and hour on spot", _PRICES,
                   conservative=False, read=amount),
    )  # fmt: skip
    meets: tuple[str, ...] = ("quantize", "continuous_batching", "speculate")
    effort_days = Decimal(5)
    risk: Literal["low", "medium", "high"] = "medium"
    reversible = False
    rule_of_thumb = (
        "2-3x, the gap between list prices: leaves out that a cheaper GPU does less, that replicas are whole, and that "
        "a reservation is paid while nobody asks. An H200 is 1.2x an H100 and costs 1.2x as much"
    )
    slo_effect = "the limit on time per output token holds at the batch that is planned with; spot work may come later"
    undo = "A reservation cannot be given back before it ends; the rest can be."
    no_table = 'name what you can buy in [procure]: gpu = "h200-sxm", commitment = "reserved_1y" or spot_where'

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Decide which places are bought otherwise.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged, or the whole answer.

        Raises:
            AssumptionError: A value of the assumptions cannot be used.
        """
        if isinstance(assumed.values["spot_where"], Predicate) and bill.sites is not None:
            bill.sites.let_wait(mark_of(self.name, "spot_where"))
        return super().judge(bill, assumed)

    def refusal(self, place: Place, bill: Bill, assumed: Assumed) -> str:
        """Say why a place cannot be changed: nobody says what its GPU would cost so.

        Args:
            place: The place.
            bill: The log's own bill.
            assumed: The lever's assumptions.

        Returns:
            The reason; empty where it can.
        """
        reason = super().refusal(place, bill, assumed)
        try:
            self.change(assumed)(place, "mid")
        except NotEvaluable as error:
            return reason or str(error)
        return reason

    def change(self, assumed: Assumed) -> Change:
        """Say what is changed of a place: its GPUs and what is paid for them.

        Args:
            assumed: The lever's assumptions.

        Returns:
            Function from a place and a scenario to what is changed there.

        Raises:
            AssumptionError: The GPU is not known, or the table asks for nothing that can be bought.
        """
        values = assumed.values
        if all(values[key] is None for key in ("gpu", "commitment", "spot_where", "usd_per_hour")):
            raise AssumptionError(f"[procure] names nothing to buy: {self.no_table}")
        is_reserved = values["commitment"] in _RESERVED
        for key, is_asked, asks in (
            ("reserved_usd_per_hour", is_reserved, 'commitment = "reserved_1y"'),
            ("spot_usd_per_hour", values["spot_where"] is not None, "spot_where"),
        ):
            if values[key] is not None and not is_asked:
                raise AssumptionError(f"[procure]: {key} is a price of nothing that is bought; add {asks}")
        wanted = cast("str | None", values["gpu"])
        try:
            other = None if wanted is None else gpu(wanted)
        except TenfoldError as error:
            raise AssumptionError(f"[procure] gpu: {error}") from error

        def changed(place: Place, scenario: Scenario) -> Hosting:
            now = place.hosted.deployment.gpu
            bought = other if other is not None and other.name != now.name else None
            kind = (bought or now).name
            commitment = str(values["commitment"])
            # today's price is one on demand only where it is paid so
            is_listed = bought is not None or (
                values["commitment"] is not None and place.hosted.pools[0].commitment != "on_demand"
            )
            terms = {
                "usd_per_hour": "on_demand" if is_listed else None,
                "reserved_usd_per_hour": commitment if commitment in _RESERVED else None,
                "spot_usd_per_hour": "spot" if values["spot_where"] is not None else None,
            }
            on_demand, reserved, spot = (_price(assumed, key, place, kind, terms[key], scenario) for key in terms)
            return Hosting(
                gpu=bought,
                usd_per_gpu_hour=on_demand,
                reserved_usd_per_gpu_hour=reserved,
                spot_usd_per_gpu_hour=spot,
                spot_rework=float(assumed.at(scenario).number("spot_rework_ratio")),
            )

        return changed

    def facts(self, moved: Moved, assumed: Assumed) -> tuple[dict[str, Any], ...]:
        """Say what is reserved, what runs on demand and on spot, and at which prices.

        Args:
            moved: The place.
            assumed: The lever's assumptions.

        Returns:
            Facts.
        """
        place, after, site = moved.place, moved.after, moved.place.site
        assert site is not None
        change = self.change(assumed)
        how, dear, cheap = (change(place, scenario) for scenario in ("mid", "low", "high"))
        step = "serving.replanning"
        found = [fact(label(place, "usd_per_gpu_hour_today"), str(site.usd_per_gpu_hour), "USD", "fleet")]
        for name, key in (
            ("on_demand", "usd_per_gpu_hour"),
            ("reserved", "reserved_usd_per_gpu_hour"),
            ("spot", "spot_usd_per_gpu_hour"),
        ):
            low, mid, high = (getattr(terms, key) for terms in (cheap, how, dear))
            if mid is not None:
                unit = "USD, stated" if low == mid == high else f"USD, {low} to {high}, by lists"
                found.append(fact(label(place, f"usd_per_gpu_hour_{name}"), str(mid), unit, "gpu_prices"))
        found += [
            fact(label(place, "reserved_replicas"), after.reserved, "replicas, paid whether used or not", step),
            fact(label(place, "on_demand_gpu_hours"), f"{float(after.on_demand_hours):.1f}", "GPU hours", step),
            fact(label(place, "spot_gpu_hours"), f"{float(after.spot_hours):.1f}", "GPU hours", step),
        ]
        if how.reserved_usd_per_gpu_hour is not None:
            price = how.usd_per_gpu_hour or site.usd_per_gpu_hour
            ratio = how.reserved_usd_per_gpu_hour / price if price else Decimal(0)
            found.append(fact(label(place, "reserve_above"), f"{ratio:.2f}",
                              "share of hours that must need a replica to reserve it", step))  # fmt: skip
        return tuple(found)

    def first_action(self, moved: Moved) -> str:
        """Say what to do first at the place that saves most.

        Args:
            moved: The place.

        Returns:
            One sentence.
        """
        after = moved.after
        terms = [f"{after.reserved} reserved"] if after.reserved else []
        terms += ["the rest on demand"] if after.reserved < after.replicas and after.reserved else []
        terms += [f"{float(after.spot_hours):,.0f} GPU hours on spot"] if after.spot_hours else []
        how = f" ({', '.join(terms)})" if terms else ""
        return (
            f"Serve {moved.place.name} on {after.gpus_in_words}{how} in place of {moved.before.gpus_in_words}: "
            f"{shown(moved.saved_pusd)} of this window's bill. Ask for a quote, and state it in [procure]: prices that "
            "are not stated follow from others' lists."
        )


def _price(
    assumed: Assumed, key: str, place: Place, kind: str, commitment: str | None, scenario: Scenario
) -> Decimal | None:
    """Give a price that is stated, else what lists make of today's; None where none is asked for."""
    stated = assumed.values[key]
    if isinstance(stated, Decimal):
        return stated
    if commitment is None:
        return None
    pool = place.hosted.pools[0]
    # own machines and contracts are in no list: what they are is a GPU by the hour
    paid = pool.commitment if pool.commitment in ("on_demand", "spot", *_RESERVED) else "on_demand"
    try:
        found = offer(pool.usd_per_hour, Terms(place.hosted.deployment.gpu.name, paid), Terms(kind, commitment))
    except NotEvaluable as error:
        raise NotEvaluable(f"{error}; or state {key} in [procure]") from error
    return {"low": found.high, "mid": found.mid, "high": found.low}[scenario]


LEVER = Procure()
