"""Lever 7: a student model trained for the traffic: a price row of one's own, and charges that always run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl

from tenfold.errors import PriceFileError, near
from tenfold.levers import distill_evidence
from tenfold.levers.base import Assumed, Assumption, Bill, Judged, Look, Stage, Unvetoed
from tenfold.levers.distill_charges import charges
from tenfold.levers.evals import Evals, no_evals, read_evals
from tenfold.levers.levels import least_e12
from tenfold.levers.other_model import CHANGED, Retold, aside, knobs, retold
from tenfold.levers.repricing import missing, tried
from tenfold.levers.scoring import register
from tenfold.levers.tally import Tally
from tenfold.levers.values import Range, Value, amount, choice, count, path, ratio
from tenfold.prices.compiling import with_price
from tenfold.prices.meters import meters
from tenfold.prices.models import price_file
from tenfold.slo import Slo
from tenfold.store import steps

PROVIDER, MODEL = "distill", "student"
_PLACE = "[distill] student"
_SCORED, _JUDGED = "lever_distill_scored", "lever_distill_judged"
_ONE = Range(*[Decimal(1)] * 3)


def read_student(raw: object) -> Value:
    """Read the student's rates, as a price file would have them.

    Args:
        raw: What TOML, or a caller in Python, gave: USD per million tokens by key of a price file.

    Returns:
        Key to rate as written.

    Raises:
        ValueError: A key or a rate cannot be used, or ``input`` or ``output`` is missing.
    """
    if not isinstance(raw, Mapping):
        raise ValueError('must be a table of rates, such as { input = "0.10", output = "0.40" }')  # noqa: TRY004
    known = [meter.price for meter in meters()]
    rates: dict[str, Value] = {}
    for key, value in cast("Mapping[str, object]", raw).items():
        if key not in known:
            raise ValueError(f'has no key "{key}".{near(key, known)} It takes {", ".join(known)}')
        # a caller in Python may give a float, which a price file cannot hold
        rates[key] = Decimal(str(value)) if isinstance(value, float) else cast("Value", value)
    if "input" not in rates or "output" not in rates:
        raise ValueError("needs input and output, in USD per million tokens (0 where there is none)")
    try:
        price_file("rates", _price(rates)).price[0].rates()
    except PriceFileError as error:
        raise ValueError(str(error).partition("): ")[2]) from None
    return rates


def _price(rates: Mapping[str, Value]) -> dict[str, Any]:
    """Write the student as a price file; where it is from stands in the assumptions."""
    entry = {"model": MODEL, "source": "assumed", "checked": date.min, **rates}
    return {"provider": PROVIDER, "price": [entry]}


def _days(raw: object) -> int:
    value = count(raw)
    if not value:
        raise ValueError("must be at least 1 day")
    return value


class Distill(Unvetoed):
    """A student in place of today's model, for traffic that a rule names."""

    name = "distill"
    number = 7
    stage = Stage.MODEL
    needs = (("ts",), ("input_tokens",), ("output_tokens",))
    columns: tuple[str, ...] = ("request_id", "session_id", "ttft_ms", "duration_ms")
    changed = CHANGED
    assumptions = (
        Assumption(
            "student",
            None,
            "its rates as in a price file, USD per million tokens",
            "none: no figure",
            conservative=True,
            read=read_student,
        ),
        Assumption("training_usd", Decimal(0), "USD each time", "free", conservative=False, read=amount),
        Assumption(
            "labels",
            0,
            "answers of today's model each time it is trained, at their mean cost",
            "none bought",
            conservative=False,
            read=count,
        ),
        Assumption("hosting_usd_per_hour", Decimal(0), "USD", "free", conservative=False, read=amount),
        Assumption("retrain_days", 90, "days until it is trained again", "a quarter", conservative=True, read=_days),
        Assumption(
            "token_ratio",
            _ONE,
            "input tokens of the student for one of today's",
            "both models count alike; others' tokenizers differ by up to 30 %",
            conservative=False,
            read=ratio,
            falls=True,
        ),
        Assumption(
            "output_ratio",
            _ONE,
            "output tokens of the student for one of today's",
            "answers stay as long; small students have been seen to write 15 to 30 % more",
            conservative=False,
            read=ratio,
            falls=True,
        ),
        Assumption(
            "cache",
            "follow",
            "follow, keep or lose",
            "cached reads stay where the turn before them ran at the same model",
            conservative=True,
            read=choice("follow", "keep", "lose"),
        ),
        Assumption(
            "evals",
            None,
            f'file of scores of model "{MODEL}" by request or feature',
            "none: every request in where goes",
            conservative=False,
            read=path,
        ),
        Assumption(
            "min_quality",
            None,
            "lowest score that its answer may have",
            "the service levels' min_quality, else the score of today's model",
            conservative=True,
            read=amount,
        ),
    )
    conflicts: tuple[str, ...] = ("route",)
    effort_days = Decimal(20)
    risk: Literal["low", "medium", "high"] = "high"
    reversible = True
    rule_of_thumb = (
        "5-10x, the price ratio of student and teacher: leaves out labels and training, hosting that runs while nobody "
        "asks, training again as traffic drifts, longer answers, lost caches, and what only the teacher can do"
    )
    slo_effect = "unknown"

    def marks(self, slo: Slo, assumed: Assumed) -> Mapping[str, str]:
        """Write the score that each request must reach; a student has no latency model.

        Args:
            slo: The service levels.
            assumed: Its assumptions.

        Returns:
            Column to SQL; NULL where nothing is stated.
        """
        return {
            "distill_least_e12": least_e12(slo, cast("Decimal | None", assumed.values["min_quality"])),
            "distill_ttft_us": "cast(null as bigint)",
            "distill_deadline_us": "cast(null as bigint)",
        }

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Decide which requests go to the student, and which lose their cache by that.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged; the whole answer where no traffic or no student is named.

        Raises:
            AssumptionError: The evals cannot be read.
            PriceFileError: The price book has prices of a provider of that name.
        """
        student = assumed.values["student"]
        if assumed.where is None or student is None:
            return distill_evidence.without("no_assumption", _NO_WHERE if assumed.where is None else _NO_STUDENT)
        lacking = missing(self, bill)
        if lacking:
            return distill_evidence.without("not_measurable", lacking)
        session = bill.session
        session.book = with_price(session.book, _PLACE, _price(cast("Mapping[str, Value]", student)))
        self._score(bill, assumed)
        trial = f"{_JUDGED}_trial"
        steps.run(session.engine, "lever_route_trial", name=f"{trial}_judged", lever=self.name, scored=_SCORED)
        tried(_RETOLD, bill, Judged(f"{trial}_judged", knobs(self.name)), assumed, trial)
        steps.run(
            session.engine,
            "lever_route_judged",
            name=_JUDGED,
            materialised=True,
            lever=self.name,
            scored=_SCORED,
            trial=trial,
            settings=f"{_SCORED}_settings",
        )
        found = distill_evidence.found(bill, _JUDGED)
        return Judged(_JUDGED, knobs(self.name), aside=aside(self.name), is_ranged=found.unknown_reads > 0)

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Change the bill: the student's tokens at its rates, and its fixed charges over the window.

        Args:
            bill: The bill before.
            assumed: Its assumptions.

        Returns:
            The bill after.
        """
        found = distill_evidence.found(bill, _JUDGED)
        own = charges(bill.session, assumed, found.now_pusd, found.moved)
        return replace(_RETOLD.apply(bill, assumed), fixed_pusd=bill.fixed_pusd + own.total)

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        """Say what the student saves, what it costs whatever it answers, and from where on it pays.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.
            counted: What it did on its own, counted.

        Returns:
            Status, facts and advice.
        """
        found = distill_evidence.found(bill, _JUDGED)
        own = charges(bill.session, assumed, found.now_pusd, found.moved)
        return distill_evidence.look(bill, assumed, counted, found, own, _evals(assumed))

    def _score(self, bill: Bill, assumed: Assumed) -> None:
        session, engine = bill.session, bill.session.engine
        used = engine.fetch("select distinct price_key from lever_base")["price_key"].to_list()
        target = {"provider": PROVIDER, "model": MODEL, "service_tier": "standard", "region": ""}
        made = session.add_keys(dict.fromkeys(used, target))
        rows = [(key, *parts[:2], PROVIDER, False, made.get(key, key)) for key, *parts in session.keys]
        engine.register(f"{_SCORED}_keys", pl.DataFrame(rows, schema=_KEYS, orient="row"))
        evals = _evals(assumed)
        own = [(provider, model) for _, provider, model, *_ in session.keys if provider != PROVIDER]
        register(engine, evals, session.book, [(PROVIDER, MODEL)], f"{_SCORED}_evals")
        register(engine, evals, session.book, own, f"{_SCORED}_own")
        settings = {
            "has_evals": assumed.values["evals"] is not None,
            "is_cascade": False,
            "is_sticky": False,
            "cache": str(assumed.values["cache"]),
            "router_pusd": 0,
            "verifier_pusd": 0,
        }
        engine.register(f"{_SCORED}_settings", pl.DataFrame([settings]))
        steps.run(
            engine,
            "lever_route_scored",
            name=_SCORED,
            materialised=True,
            lever=self.name,
            keys=f"{_SCORED}_keys",
            evals=f"{_SCORED}_evals",
            own=f"{_SCORED}_own",
            settings=f"{_SCORED}_settings",
        )


class _Retold:
    """What the student does to the requests alone, without its fixed charges."""

    changed = CHANGED

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        told = Retold(
            Fraction(assumed.number("token_ratio")),
            Fraction(assumed.number("output_ratio")),
            sessionless_keeps=assumed.scenario != "low",
            keeps_writes=assumed.values["cache"] != "lose",
        )
        return retold(bill, Distill.name, told, f"{bill.requests}_distilled")


_RETOLD = _Retold()
LEVER = Distill()
_NO_WHERE = "no assumption yet: name the traffic as `where` of [distill], and the student's rates"
_NO_STUDENT = 'no assumption yet: name the student\'s rates in [distill]: student = { input = "0.10", output = "0.40" }'
_KEYS: dict[str, pl.DataType] = {
    "price_key": pl.Int32(),
    "provider": pl.String(),
    "model": pl.String(),
    "target_provider": pl.String(),
    "is_same": pl.Boolean(),
    "target_key": pl.Int32(),
}


def _evals(assumed: Assumed) -> Evals:
    file = assumed.values["evals"]
    return read_evals(file, "distill") if isinstance(file, Path) else no_evals()
