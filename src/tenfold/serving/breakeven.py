"""API against GPUs of one's own: from how many tokens a month on the GPUs are cheaper, and what that hangs on.

GPUs come in whole replicas, at least two of them for availability, enough for the busiest hour: the step from one
number of replicas to the next is the result, and so is how far the answer moves with price, throughput and mix.
(serving.md 9)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from tenfold.display import counted, percent
from tenfold.errors import NotEvaluable
from tenfold.ledger.session import DAYS_PER_MONTH
from tenfold.money import PUSD_PER_USD, usd_text
from tenfold.serving.api_mix import LEAST_DAYS, Kind, Mix
from tenfold.serving.capacity import Load, capacity, replicas_needed
from tenfold.serving.memory import Deployment, default_caps
from tenfold.serving.roofline import interval
from tenfold.serving.sizing import unservable

HOURS_PER_MONTH = DAYS_PER_MONTH * 24
# Share of a replica's throughput that the busiest hour is planned to use; bursts within the hour need the rest.
UTILIZATION = Decimal("0.6")
_MOST_REPLICAS = 1000


@dataclass(frozen=True, slots=True)
class Terms:
    """What hosting costs and how it is planned.

    Args:
        deployment: One replica.
        usd_per_gpu_hour: Price of one GPU for one hour.
        ops_usd_per_month: People and everything else that hosting takes in a month.
        utilization: Share of a replica's throughput that the busiest hour may use.
        least_replicas: Replicas that availability asks for.
        tpot_slo_s: Limit on seconds an output token, or None.
        scale: Measured over predicted rate; 1 without a measurement.
        is_calibrated: Whether it was measured.
        pace: Factor on the rate: an end of the interval.
    """

    deployment: Deployment
    usd_per_gpu_hour: Decimal
    ops_usd_per_month: Decimal = Decimal(0)
    utilization: Decimal = UTILIZATION
    least_replicas: int = 2
    tpot_slo_s: float | None = None
    scale: float = 1.0
    is_calibrated: bool = False
    pace: float = 1.0


class Outcome(NamedTuple):
    """Where the break-even lies under some terms.

    Args:
        what: What was changed.
        value: To what.
        tokens_per_s: Output tokens a second of one replica.
        batch: Requests under way in it.
        replicas: Replicas that the busiest hour takes.
        gpus: GPUs of all of them.
        self_pusd_per_month: What they cost a month, with ops.
        tokens_per_month: Tokens a month, of prompts and answers, from which on these GPUs cost less than the API.
        utilisation_ratio: Share of what they could serve that this is; above 1 they never pay.
        measured_ratio: Share of it that the log's own traffic is; None below seven days.
        api_pusd_per_month: What the API bills for that traffic a month; None below seven days.
        tpot_s: Seconds an output token with that batch.
    """

    what: str
    value: str
    tokens_per_s: float
    batch: int
    replicas: int
    gpus: int
    self_pusd_per_month: int
    tokens_per_month: int
    utilisation_ratio: float
    measured_ratio: float | None
    api_pusd_per_month: int | None
    tpot_s: float

    @property
    def pays(self) -> bool | None:
        """Whether the GPUs cost less than the API for the log's own traffic; None where that is not projected."""
        return None if self.api_pusd_per_month is None else self.self_pusd_per_month < self.api_pusd_per_month

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold serving breakeven --json``.

        Returns:
            Money as decimal strings of USD.
        """
        return {
            "what": self.what,
            "value": self.value,
            "tokens_per_s_per_replica": round(self.tokens_per_s, 2),
            "batch": self.batch,
            "tpot_ms": round(self.tpot_s * 1e3, 4),
            "replicas": self.replicas,
            "gpus": self.gpus,
            "tokens_per_month": self.tokens_per_month,
            "utilisation_ratio": round(self.utilisation_ratio, 6),
            "self_usd_per_month": usd_text(self.self_pusd_per_month),
            "api_usd_per_month": usd_text(self.api_pusd_per_month),
            "measured_utilisation_ratio": None if self.measured_ratio is None else round(self.measured_ratio, 6),
            "pays": self.pays,
        }


class Grown(NamedTuple):
    """The least traffic of the log's shape from which on hosting pays, replicas growing with it.

    Args:
        tokens_per_month: That traffic.
        replicas: Replicas that carry it.
        times: How many times the log's own traffic it is.
    """

    tokens_per_month: int
    replicas: int
    times: float


def break_even(mix: Mix, terms: Terms, *, what: str = "as stated", value: str = "") -> Outcome:
    """Find where hosting costs as much as the API.

    Args:
        mix: The traffic and its price at the API.
        terms: What hosting costs.
        what: What was changed, to name it.
        value: To what.

    Returns:
        The outcome.

    Raises:
        NotEvaluable: The API bills nothing for these tokens, there are no output tokens, or the model does not fit.

    Formula:
        n = max(2, ceil(peak / (rate x utilisation))) replicas; T* = (GPUs x price x hours + ops) / (API price a token);
        u* = T* / (n x tokens a second x seconds of a month). (serving.md 9)
    """
    _comparable(mix)
    one = terms.deployment
    if reason := unservable(one):
        raise NotEvaluable(f"{one.model.name} on {one.tp} x {one.gpu.name} is not servable: {reason}")
    load = Load(*(kind.tokens / mix.requests for kind in (mix.computed, mix.cached, mix.output)))
    limit = None if terms.tpot_slo_s is None else terms.tpot_slo_s * terms.scale * terms.pace
    able = capacity(one, load, cap=default_caps(one.gpu).sequences, tpot_slo_s=limit)
    if able is None:
        raise NotEvaluable(
            f"{one.model.name} in {one.weights.name} with a request of {load.resident_tokens:,.0f} tokens does not fit "
            f"on {one.tp} x {one.gpu.name}: more GPUs a replica (--tp) or smaller numbers (--weights, --kv)"
        )
    if able.bound == "missed":
        raise NotEvaluable(
            f"one request alone takes {able.pace.tpot_s / terms.scale * 1e3:,.1f} ms an output token on {one.tp} x "
            f"{one.gpu.name}, more than the limit: no number of replicas keeps it"
        )
    rate = able.pace.tokens_per_s * terms.scale * terms.pace
    replicas = replicas_needed(mix.peak_tokens_per_s, rate, float(terms.utilization), terms.least_replicas)
    pusd = _month_pusd(terms, replicas)
    even = _tokens_for(mix, pusd)
    could = replicas * _month_tokens(mix, rate)
    month = mix.tokens_per_month
    return Outcome(
        what=what,
        value=value,
        tokens_per_s=rate,
        batch=able.batch,
        replicas=replicas,
        gpus=replicas * one.tp,
        self_pusd_per_month=pusd,
        tokens_per_month=even,
        utilisation_ratio=even / could,
        measured_ratio=None if month is None else float(month) / could,
        api_pusd_per_month=None if month is None else round(month * Fraction(mix.pusd, mix.tokens)),
        tpot_s=able.pace.tpot_s / (terms.scale * terms.pace),
    )


def grown(mix: Mix, terms: Terms) -> Grown | None:
    """Find the least traffic of this shape for which hosting pays, with as many replicas as it takes.

    Args:
        mix: The traffic and its price at the API.
        terms: What hosting costs.

    Returns:
        The traffic; None where hosting never pays, or the log is too short to know a month of it.
    """
    month = mix.tokens_per_month
    if month is None:
        return None
    here = break_even(mix, terms)
    # what a replica carries of the log's shape, its busiest hour being what is planned for
    each = float(month) * here.tokens_per_s * float(terms.utilization) / mix.peak_tokens_per_s
    for replicas in range(terms.least_replicas, _MOST_REPLICAS + 1):
        even = _tokens_for(mix, _month_pusd(terms, replicas))
        if even <= replicas * each:
            return Grown(even, replicas, even / float(month))
    return None


def sensitivity(mix: Mix, terms: Terms, prices: Sequence[tuple[str, Decimal]] = ()) -> list[Outcome]:
    """Move one thing at a time.

    Args:
        mix: The traffic and its price at the API.
        terms: What hosting costs.
        prices: Other prices of the GPU, by name.

    Returns:
        Outcomes: throughput at the ends of its interval, other limits on the time per output token, prices,
        utilisations, mixes and costs of people. What cannot be served at all is left out.
    """
    found: list[Outcome] = []
    for what, value, other, changed in _changes(mix, terms, prices):
        try:
            found.append(break_even(other, changed, what=what, value=value))
        except NotEvaluable:
            continue
    return found


def impossible(mix: Mix, terms: Terms, moved: Sequence[Outcome]) -> list[str]:
    """Name the changes that ``sensitivity`` left out because the traffic could not be served so.

    Args:
        mix: The traffic and its price at the API.
        terms: What hosting costs.
        moved: What ``sensitivity`` gave.

    Returns:
        Texts such as ``TPOT limit 20 ms a token``.
    """
    there = {(one.what, one.value) for one in moved}
    return [f"{what} {value}" for what, value, *_ in _changes(mix, terms, ()) if (what, value) not in there]


def _changes(mix: Mix, terms: Terms, prices: Sequence[tuple[str, Decimal]]) -> list[tuple[str, str, Mix, Terms]]:
    low, high = interval(terms.is_calibrated, moe=terms.deployment.model.is_moe)
    tried: list[tuple[str, str, Mix, Terms]] = [
        ("throughput", name, mix, replace(terms, pace=pace))
        for name, pace in (("low", low), ("mid", 1), ("high", high))
    ]
    limits = (None, *(ms / 1e3 for ms in (80, 40, 20)))
    tried += [
        (
            "TPOT limit",
            "none" if limit is None else f"{limit * 1e3:g} ms a token",
            mix,
            replace(terms, tpot_slo_s=limit),
        )
        for limit in dict.fromkeys((*limits, terms.tpot_slo_s))
    ]
    tried += [("price", name, mix, replace(terms, usd_per_gpu_hour=price)) for name, price in prices]
    tried += [
        ("utilisation", str(share), mix, replace(terms, utilization=share))
        for share in (Decimal("0.4"), Decimal("0.6"), Decimal("0.8"))
    ]
    tried += [("mix", name, other, terms) for name, other in _mixes(mix)]
    # an engineer's half, and a whole one, at 20,000 USD a month with everything
    tried += [
        ("ops", f"{usd:,} USD a month", mix, replace(terms, ops_usd_per_month=usd))
        for usd in dict.fromkeys((Decimal(0), terms.ops_usd_per_month, Decimal(10_000), Decimal(20_000)))
    ]
    return tried


def _mixes(mix: Mix) -> list[tuple[str, Mix]]:
    """Change the mix: nothing read from a cache, answers half and twice as long; each kind keeps its mean price."""
    made: list[tuple[str, Mix]] = []
    if mix.cached.tokens:
        tokens = mix.computed.tokens + mix.cached.tokens
        per_token = Fraction(mix.computed.pusd, mix.computed.tokens) if mix.computed.tokens else Fraction(0)
        computed = Kind(tokens, round(per_token * tokens)) if per_token else Kind(tokens, mix.cached.pusd)
        made.append(("nothing read from a cache", replace(mix, computed=computed, cached=Kind(0, 0))))
    for name, times in (("answers half as long", Fraction(1, 2)), ("answers twice as long", Fraction(2))):
        output = Kind(round(mix.output.tokens * times), round(mix.output.pusd * times))
        made.append((name, replace(mix, output=output, peak_tokens_per_s=mix.peak_tokens_per_s * float(times))))
    return made


def _comparable(mix: Mix) -> None:
    if not mix.pusd:
        raise NotEvaluable(f"the API ({mix.source}) bills nothing for these tokens, so hosting never pays")
    if not mix.output.tokens:
        raise NotEvaluable("these requests have no output tokens, by which a replica's throughput is counted")


def _month_pusd(terms: Terms, replicas: int) -> int:
    gpus = replicas * terms.deployment.tp
    usd = gpus * Fraction(terms.usd_per_gpu_hour) * HOURS_PER_MONTH + Fraction(terms.ops_usd_per_month)
    return round(usd * PUSD_PER_USD)


def _tokens_for(mix: Mix, pusd: int) -> int:
    """Give the tokens that the API bills an amount for, rounded up."""
    return -(-pusd * mix.tokens // mix.pusd)


def _month_tokens(mix: Mix, tokens_per_s: float) -> float:
    """Give the tokens of prompts and answers that a replica serves a month, going all the time."""
    return tokens_per_s * mix.tokens / mix.output.tokens * float(HOURS_PER_MONTH) * 3600


def assumptions(mix: Mix, terms: Terms, here: Outcome) -> list[str]:
    """Say what the figures rest on.

    Args:
        mix: The traffic.
        terms: What hosting costs.
        here: The break-even under these terms.

    Returns:
        Sentences.
    """
    pace = f"{counted(here.batch, 'request')} at once a replica, {here.tpot_s * 1e3:,.0f} ms an output token"
    limit = (
        "no limit on it is set, and one changes the answer: --tpot-slo-ms"
        if terms.tpot_slo_s is None
        else f"the limit is {terms.tpot_slo_s * 1e3:g} ms"
    )
    said = [
        f"{pace}: {limit}",
        f"the busiest hour may use {percent(float(terms.utilization))} of a replica",
        f"at least {terms.least_replicas} replicas, for availability",
        f"a month has {float(DAYS_PER_MONTH):g} days, {float(HOURS_PER_MONTH):g} hours",
        "own GPUs find as much in their prefix cache as the log has cached reads",
        "answers of the hosted model are taken to be as good and as long",
        f"throughput {'calibrated by a measurement' if terms.is_calibrated else 'by the roofline, not calibrated'}",
    ]
    if not terms.ops_usd_per_month:
        said.append("no cost of people is counted: state it with --ops-usd-per-month")
    if mix.other_pusd:
        said.append(f"{usd_text(mix.other_pusd)} USD of searches and fees are left out: hosting does not replace them")
    if mix.unpriced_requests:
        lost = f"{counted(mix.unpriced_requests, 'request')} without a price ({mix.unpriced_tokens:,} tokens)"
        said.append(f"{lost} are in no figure: {mix.why_unpriced}")
    if mix.as_input_tokens:
        said.append(
            f"{mix.source} has no rate for {mix.as_input_tokens:,} tokens of the prompt cache: billed there as input"
        )
    if mix.label == "modelled":
        said.append(f"API prices are those of {mix.source}, with the log's own tokens and cached reads")
    if mix.days < LEAST_DAYS:
        said.append(f"{counted(mix.days, 'day')} of log: too few to project a month, or to have seen the busiest hour")
    return said
