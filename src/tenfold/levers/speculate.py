"""Lever 10: speculative decoding. It buys latency; at full batches it costs money, and this says so."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, cast

from tenfold.errors import AssumptionError, ServingError
from tenfold.levers.base import Assumed, Assumption, Bill, Judged, Look, Scenario
from tenfold.levers.hosting import HostingLever, Moved, label, without
from tenfold.levers.sites import Change, Place
from tenfold.levers.tally import fact
from tenfold.levers.values import Range, amount, count, ratio, share
from tenfold.money import shown
from tenfold.serving.hosted import PROVIDER
from tenfold.serving.replanning import Hosting
from tenfold.serving.roofline import step_cost
from tenfold.serving.speculation import Speculation, acceptance_of, break_even_batch, checked, speedup

_NO_ACCEPTANCE = (
    "how many drafted tokens are kept is not stated, and no default holds for your traffic: measure it (vLLM: 1 + "
    "spec_decode_num_accepted_tokens_total / spec_decode_num_drafts_total; SGLang: spec_accept_length) and write it "
    "as acceptance_length in [speculate]"
)

_MOST_DRAFTED = 64


class Speculate(HostingLever):
    """Several tokens a step, guessed by a draft and checked by the model."""

    name = "speculate"
    number = 10
    assumptions = (
        Assumption("acceptance", None, "probability that a drafted token is kept, given those before it were, 0 to 1",
                   "none: it depends on the traffic and the draft", conservative=True, read=share),
        Assumption("acceptance_length", None, "tokens that a step yields, in place of acceptance",
                   "none: as engines report it", conservative=True, read=ratio),
        Assumption("draft_tokens", 4, "drafted tokens a step", "usual of EAGLE and MTP heads: 3 to 5",
                   conservative=True, read=count),
        Assumption("draft_cost_ratio", Decimal("0.05"), "time to draft a token over a step of the model",
                   "a draft of one layer", conservative=False, read=amount),
    )  # fmt: skip
    meets: tuple[str, ...] = ("quantize", "continuous_batching", "procure")
    effort_days = Decimal(5)
    risk: Literal["low", "medium", "high"] = "medium"
    rule_of_thumb = (
        "2-3x: of latency, for one request at a time. Beyond the batch at which the GPU multiplies all the time it "
        "slows down and costs more; at a tight limit on time per output token it can save"
    )
    slo_effect = "time per output token falls at small batches, rises at large ones"
    undo = "Start the engine without a draft; answers are the same."
    no_table = "write [speculate] with acceptance_length, measured on your traffic"

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Decide which places speculate; refuse without a measured acceptance.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged, or the whole answer.

        Raises:
            AssumptionError: A value of the assumptions cannot be used.
        """
        is_hosted = any(provider == PROVIDER for _, provider, *_ in bill.session.keys)
        stated = [assumed.values[key] for key in ("acceptance", "acceptance_length")]
        if is_hosted and assumed.has_table and stated == [None, None]:
            return without("not_measurable", _NO_ACCEPTANCE)
        return super().judge(bill, assumed)

    def change(self, assumed: Assumed) -> Change:
        """Say what is changed of a place: it drafts.

        Args:
            assumed: The lever's assumptions.

        Returns:
            Function from a place and a scenario to what is changed there.

        Raises:
            AssumptionError: The figures cannot be.
        """
        for scenario in ("low", "mid", "high"):
            _how(assumed, scenario)

        def changed(_place: Place, scenario: Scenario) -> Hosting:
            return Hosting(speculation=_how(assumed, scenario))

        return changed

    def facts(self, moved: Moved, assumed: Assumed) -> tuple[dict[str, Any], ...]:
        """Say what speculation does to latency now, and from which batch on it slows down.

        Args:
            moved: The place.
            assumed: The lever's assumptions.

        Returns:
            Facts.
        """
        place, site, one = moved.place, moved.place.site, moved.before.deployment
        assert site is not None
        how, cost, tokens = _how(assumed, "mid"), step_cost(one), site.load.resident_tokens
        now, full = place.hosted.batch, moved.before.capacity.batch
        most = break_even_batch(one, cost, tokens, how)
        until = "every batch in memory" if most is None else most
        step = "serving.speculation"
        return (
            fact(label(place, "tokens_a_step"), f"{how.expected_tokens:.2f}", "tokens that a step yields", step),
            fact(label(place, "speedup_now"), f"{speedup(one, cost, now, tokens, how):.2f}",
                 f"of decoding at today's batch of {now:.1f}", step),
            fact(label(place, "speedup_full"), f"{speedup(one, cost, full, tokens, how):.2f}",
                 f"of decoding at the largest batch of {full}", step),
            fact(label(place, "faster_up_to"), until, "requests at once", step),
        )  # fmt: skip

    def first_action(self, moved: Moved) -> str:
        """Say what to do first at the place that saves most.

        Args:
            moved: The place.

        Returns:
            One sentence.
        """
        gist = f"Serve {moved.place.name} with a draft {moved.swap}: {shown(moved.saved_pusd)} of this window's bill"
        why = {
            "slo": "the limit on time per output token keeps batches small",
            "cap": "the engine's cap keeps batches small",
            "memory": "memory keeps batches small",
        }.get(moved.before.capacity.bound)
        return f"{gist}, as {why}." if why else f"{gist}."


def _how(assumed: Assumed, scenario: Scenario) -> Speculation:
    values = assumed.at(scenario)
    tokens = cast("int", assumed.values["draft_tokens"])
    if tokens > _MOST_DRAFTED:
        raise AssumptionError(f"[speculate] draft_tokens must be at most {_MOST_DRAFTED}, not {tokens:,}")
    draft = float(cast("Decimal", assumed.values["draft_cost_ratio"]))
    try:
        if isinstance(assumed.values["acceptance"], Range):
            return checked(float(values.number("acceptance")), tokens, draft)
        return checked(acceptance_of(float(values.number("acceptance_length")), tokens), tokens, draft)
    except ServingError as error:
        raise AssumptionError(f"[speculate]: {error}") from error


LEVER = Speculate()
