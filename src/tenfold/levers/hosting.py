"""What the levers of self-hosted serving share: places that they change, held to the same demand before and after."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar, Literal

import polars as pl

from tenfold.display import counted as counted_text
from tenfold.levers.base import Advice, Assumed, Assumption, Bill, Judged, Look, Stage, Status, Unvetoed
from tenfold.levers.matching import matches_none
from tenfold.levers.repricing import mark_of, missing
from tenfold.levers.sites import Change, Place, Sites, naive
from tenfold.levers.tally import Tally, fact
from tenfold.money import shown, usd_text
from tenfold.serving.hosted import PROVIDER
from tenfold.serving.replanning import Rehosted
from tenfold.store import steps

_FACTS = {
    "kept": "requests of models whose hosting stays as it is",
    "unpriced": "requests without a price: left as they are",
    "not_billed": "requests that are not billed",
}
_NO_FLEET = "self-hosted requests, and nothing says what their GPUs cost: name the fleet file with --fleet"
_PLACES: dict[str, pl.DataType] = {
    "price_key": pl.Int32(),
    "since": pl.Datetime("us"),
    "until": pl.Datetime("us"),
    "is_changed": pl.Boolean(),
}


@dataclass(frozen=True, slots=True)
class Moved:
    """One place under a lever alone.

    Args:
        bill: The log's own bill.
        place: Where.
        before: As it is hosted, worked out by the same model.
        after: With the lever.
    """

    bill: Bill
    place: Place
    before: Rehosted
    after: Rehosted

    def tpot_ms(self, hosting: Rehosted) -> float:
        """Give the time per output token at a hosting's largest batch: the model's, at the pace that the log shows.

        Args:
            hosting: One of the two.

        Returns:
            Milliseconds, a mean.
        """
        scale = self.place.site.scale if self.place.site else 1.0
        return hosting.capacity.pace.tpot_s / scale * 1000

    @property
    def swap(self) -> str:
        """What it runs on in place of what, in words."""
        return f"on {self.after.gpus_in_words} in place of {self.before.gpus_in_words}"

    @property
    def saved_pusd(self) -> int:
        """What it saves of the place's bill."""
        return self.place.hosted.bill_pusd - self.after.bill_pusd


class HostingLever(Unvetoed, ABC):
    """A lever that changes how models are hosted, not what is asked of them."""

    name: str
    number: int
    assumptions: tuple[Assumption, ...]
    effort_days: Decimal
    risk: Literal["low", "medium", "high"]
    rule_of_thumb: str
    slo_effect: str
    stage = Stage.HOSTING
    needs: tuple[tuple[str, ...], ...] = (("output_tokens",), ("ts",))
    columns: tuple[str, ...] = ()
    changed = ("price_key",)
    conflicts: tuple[str, ...] = ()
    reversible = True
    undo: ClassVar[str]
    no_table: ClassVar[str]
    """What to write into the lever's table, where there is none."""

    @abstractmethod
    def change(self, assumed: Assumed) -> Change:
        """Say what is changed of a place.

        Args:
            assumed: The lever's assumptions.

        Returns:
            Function from a place and a scenario to what is changed there.

        Raises:
            AssumptionError: A value of the assumptions cannot be used.
        """

    @abstractmethod
    def facts(self, moved: Moved, assumed: Assumed) -> tuple[dict[str, Any], ...]:
        """Say what is to be known of a place beside its bill.

        Args:
            moved: The place.
            assumed: The lever's assumptions.

        Returns:
            Facts.
        """

    @abstractmethod
    def first_action(self, moved: Moved) -> str:
        """Say what to do first at the place that saves most.

        Args:
            moved: The place.

        Returns:
            One sentence.
        """

    def refusal(self, place: Place, bill: Bill, assumed: Assumed) -> str:  # noqa: ARG002 -- for levers that refuse more
        """Say why a place cannot be changed, beside what all levers look at.

        Args:
            place: The place.
            bill: The log's own bill.
            assumed: The lever's assumptions.

        Returns:
            The reason; empty where it can.
        """
        return place.reason

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Decide which places the lever changes.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged; the whole answer where there is no fleet, no table, or no place to change.

        Raises:
            AssumptionError: A value of the assumptions cannot be used.
        """
        found = self._refused(bill, assumed)
        if found is not None:
            return found
        session, sites, change = bill.session, _sites(bill), self.change(assumed)
        changes, reasons, is_vetoed = self._places(bill, sites, assumed, change)
        if not changes:
            return _nothing(sites, reasons, is_vetoed=is_vetoed) or without(
                "nothing_eligible", matches_none(session.engine, assumed.where)
            )
        sites.changes[self.name] = dict.fromkeys(changes, change)
        rows = [
            (key, naive(place.hosted.since), naive(place.hosted.until), number in changes)
            for number, place in enumerate(sites.places)
            for key in place.keys
        ]
        view = f"lever_{self.name}_judged"
        session.engine.register(f"{view}_places", pl.DataFrame(rows, schema=_PLACES, orient="row"))
        steps.run(session.engine, "lever_hosting_judged", name=view, places=f"{view}_places")
        left = tuple(fact(f"left_out_{number}", None, reason, view) for number, reason in enumerate(reasons, 1))
        return Judged(view, is_ranged=True, evidence=left)

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Change the bill: requests take the rates of the other hosting, and idle time what is left of its bill.

        Args:
            bill: The bill before.
            assumed: Its assumptions.

        Returns:
            The bill after.
        """
        sites = _sites(bill)
        name, moves = f"{bill.requests}_{self.name}", f"{bill.requests}_{self.name}_moves"
        bill.session.engine.register(moves, sites.moves(self.name, assumed.scenario))
        steps.run(bill.session.engine, "lever_hosting", name=name, requests=bill.requests, moves=moves)
        fixed = bill.fixed_pusd + sites.charge(frozenset({self.name}), assumed.scenario)
        return replace(bill, requests=name, fixed_pusd=fixed)

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        """Say what the other hosting is, place by place.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.
            counted: What it did on its own, counted.

        Returns:
            Status, facts and advice.
        """
        sites = _sites(bill)
        own = frozenset({self.name})
        moved = sorted(
            (
                Moved(bill, sites.places[n], sites.rehosted(n, frozenset(), "mid"), sites.rehosted(n, own, "mid"))
                for n in sites.changes[self.name]
            ),
            key=lambda one: -one.saved_pusd,
        )
        facts = [fact("places_changed", len(moved), "models on the fleet, by stretches", f"lever_{self.name}_judged")]
        for one in moved:
            facts += [*_bills(one), *self.facts(one, assumed)]
        first = moved[0]
        action = self.first_action(first) if first.saved_pusd > 0 else _no_action(first)
        return Look(
            "ok",
            "",
            "modelled",
            sum(one.place.hosted.bill_pusd for one in moved),
            None,
            (*facts, *counted.fates(_FACTS, f"lever_{self.name}_judged")),
            Advice(action, _verify(first), self.undo),
            applies=True,
        )

    def _refused(self, bill: Bill, assumed: Assumed) -> Look | None:
        """Say why there is no figure, whatever the fleet's models are."""
        if all(provider != PROVIDER for _, provider, *_ in bill.session.keys):
            first = "Nothing to do first: no model is self-hosted here."
            return without("not_measurable", "no self-hosted requests", first=first)
        if bill.sites is None:
            return without("not_measurable", _NO_FLEET, first="Write the fleet file, and name it with --fleet.")
        lacking = missing(self, bill)
        if lacking:
            return without("not_measurable", lacking)
        return None if assumed.has_table else without("no_assumption", f"no assumption yet: {self.no_table}")

    def _places(self, bill: Bill, sites: Sites, assumed: Assumed, change: Change) -> tuple[list[int], list[str], bool]:
        """Find the places to change, why others are not, and whether a service level is the reason."""
        sql = steps.filled("lever_hosting_shares", mark=mark_of(self.name, "where"))
        shares = {key: (named, all_of) for key, all_of, named in bill.session.engine.fetch(sql).iter_rows()}
        changes: list[int] = []
        reasons: list[str] = []
        is_vetoed = False
        for number, place in enumerate(sites.places):
            parts = [shares[key] for key in place.keys]
            named, whole = sum(one[0] for one in parts), sum(one[1] for one in parts)
            if place.keys and not named:
                continue
            reason = self.refusal(place, bill, assumed)
            if not reason and named < whole:
                part = f"its where names {named:,} of {counted_text(whole, 'request')}"
                reason = f"{part}; a replica serves them all: name all of them or none"
            if not reason:
                reason, missed = _able(sites, number, change)
                is_vetoed |= missed
            if reason:
                reasons.append(f"{place.name}: {reason}")
            else:
                changes.append(number)
        return changes, reasons, is_vetoed


def without(status: Status, reason: str, *, first: str = "See the reason.") -> Look:
    """Write the answer of a lever that has no figure.

    Args:
        status: Why.
        reason: The why in one sentence.
        first: What to do first.

    Returns:
        The look.
    """
    advice = Advice(first, "Nothing to verify.", "Nothing to undo.")
    return Look(status, reason, "modelled", None, None, (), advice, applies=False)


def label(place: Place, name: str) -> str:
    """Name a fact of a place.

    Args:
        place: The place.
        name: What the fact is.

    Returns:
        The name, with the model.
    """
    return f"{name}[{place.hosted.model}]"


def _sites(bill: Bill) -> Sites:
    assert bill.sites is not None
    return bill.sites


def _nothing(sites: Sites, reasons: list[str], *, is_vetoed: bool) -> Look | None:
    """Say why no place can be changed; None where the lever's predicate names none."""
    if is_vetoed:
        return without("vetoed", "; ".join(reasons))
    if not sites.places or all(place.reason for place in sites.places):
        return without("not_measurable", "; ".join(reasons) or "the fleet serves no request of this window")
    return without("nothing_eligible", "; ".join(reasons)) if reasons else None


def _able(sites: Sites, number: int, change: Change) -> tuple[str, bool]:
    """Say why a place cannot be hosted so, and whether because of a service level."""
    before = sites.rehosted(number, frozenset(), "mid")
    after, site = sites.tried(number, change), sites.places[number].site
    if after is None or site is None:
        return "the model does not fit on 8 GPUs of that kind", False
    if after.capacity.bound == "missed":
        first, each = (1000 * took / site.scale for took in (after.capacity.pace.ttft_s, after.capacity.pace.tpot_s))
        took = f"one request at a time would take {each:.1f} ms an output token and {first:.0f} ms to the first"
        also = ", as it is today" if before.capacity.bound == "missed" else ""
        return f"{took}, above the service levels{also}", True
    return "", False


def _bills(one: Moved) -> list[dict[str, Any]]:
    step, place = "serving.replanning", one.place
    pairs = (("now", one.before), ("then", one.after))
    facts = [fact(label(place, "bill_now_usd"), usd_text(place.hosted.bill_pusd), "USD", step)]
    facts += [fact(label(place, "bill_then_usd"), usd_text(one.after.bill_pusd), "USD", step)]
    scale = place.site.scale if place.site else 1.0
    if scale != 1.0:
        said = "measured pace over the model's at today's batch; all paces here are scaled by it"
        facts.append(fact(label(place, "pace_measured_ratio"), f"{scale:.3f}", said, "fleet_busy"))
    for when, hosting in pairs:
        able = hosting.capacity
        facts += [
            fact(label(place, f"gpus_{when}"), hosting.replicas * hosting.deployment.tp, hosting.gpus_in_words, step),
            fact(label(place, f"largest_batch_{when}"), able.batch, f"requests a replica, bound by {able.bound}", step),
            fact(
                label(place, f"tpot_{when}_ms"), f"{one.tpot_ms(hosting):.1f}", "ms at that batch, mean, modelled", step
            ),
        ]
    return facts


def _no_action(one: Moved) -> str:
    more = -one.saved_pusd
    if not more:
        return f"Leave {one.place.name} as it is for money's sake: it would still take {one.after.gpus_in_words}."
    return f"Leave {one.place.name} as it is: this would take {one.after.gpus_in_words} and cost {shown(more)} more."


def _verify(one: Moved) -> str:
    batch = one.after.capacity.batch
    return (
        f"Replay a day of {one.place.name} on one such replica (vllm bench serve, {batch} at once): compare tokens a "
        "second and time per output token with the modelled ones, and give them to `tenfold serving size --calibrate`."
    )
