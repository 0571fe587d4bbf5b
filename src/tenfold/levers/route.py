"""Lever 2: a smaller model for requests that it answers well enough: a router, or a cascade that tries it first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl

from tenfold.errors import AssumptionError
from tenfold.levers.base import Assumed, Assumption, Bill, Judged, Label, Look, Stage, Status, Unvetoed
from tenfold.levers.evals import Evals, no_evals, read_evals
from tenfold.levers.levels import by_feature, least_e12
from tenfold.levers.other_model import CHANGED, Retold, aside, knobs, retold
from tenfold.levers.repricing import missing, tried
from tenfold.levers.route_evidence import Found, bars, evidence, found
from tenfold.levers.route_wording import NO_TABLE, NO_WHERE, TRY_IT, advice, status_of
from tenfold.levers.scoring import lacking_models, register, unknown_names
from tenfold.levers.tally import MOVED, Tally
from tenfold.levers.values import Range, Value, amount, choice, flag, path, ratio, table, text
from tenfold.money import PUSD_PER_USD
from tenfold.prices.naming import model_key
from tenfold.prices.words import canonical_provider
from tenfold.slo import Slo
from tenfold.store import steps

_SCORED, _TRIAL, _JUDGED = "lever_route_scored", "lever_route_trial", "lever_route_judged"
_OTHER = "lever_route_otherwise"
_SETTINGS, _KEYS = "lever_route_settings", "lever_route_keys"
_ONE = Range(*[Decimal(1)] * 3)


class Route(Unvetoed):
    """Another model for part of the traffic, by score, or for all of it at first."""

    name = "route"
    number = 2
    stage = Stage.MODEL
    needs = (("ts",), ("input_tokens",), ("output_tokens",))
    columns: tuple[str, ...] = ("request_id", "session_id", "ttft_ms", "duration_ms")
    changed = CHANGED
    assumptions = (
        Assumption("to_provider", None, "who bills the other model", "the request's own", conservative=True, read=text),
        Assumption(
            "to_model", None, "the other model, as the price book names it", "none", conservative=True, read=text
        ),
        Assumption(
            "token_ratio",
            _ONE,
            "input tokens of the other model for one of today's",
            "both models count alike: so only within one family of tokenizers; some models count 30 % more",
            conservative=False,
            read=ratio,
            falls=True,
        ),
        Assumption(
            "output_ratio",
            Range(Decimal("0.7"), Decimal(1), Decimal("1.5")),
            "output tokens of the other model for one of today's",
            "a wide range, since how long another model answers is not known before it is measured",
            conservative=True,
            read=ratio,
            falls=True,
        ),
        Assumption(
            "evals", None, "file of scores by request or feature", "none: no score", conservative=True, read=path
        ),
        Assumption(
            "min_quality",
            None,
            "lowest score that the other model's answer may have",
            "the service levels' min_quality, else the score of today's model",
            conservative=True,
            read=amount,
        ),
        Assumption("router_usd", Decimal(0), "USD a request in where", "free", conservative=False, read=amount),
        Assumption(
            "verifier",
            None,
            "usd a request, and whether the first answer is in the second prompt: makes it a cascade",
            "none: a router",
            conservative=True,
            read=table({"usd": amount, "candidate_in_prompt": flag}, required=("usd",)),
        ),
        Assumption(
            "sticky",
            False,
            "whether a session moves only as a whole",
            "each request by itself",
            conservative=False,
            read=flag,
        ),
        Assumption(
            "cache",
            "follow",
            "follow, keep or lose",
            "cached reads stay where the turn before them ran at the same model",
            conservative=True,
            read=choice("follow", "keep", "lose"),
        ),
    )
    conflicts: tuple[str, ...] = ("distill",)
    effort_days = Decimal(5)
    risk: Literal["low", "medium", "high"] = "medium"
    reversible = True
    rule_of_thumb = (
        "5-20x, the price ratio of two models on one request: leaves out the requests that stay or are asked again, "
        "verifier and router, longer answers and lost caches; a range to be sceptical of, never an input"
    )
    slo_effect = (
        "unknown (a cascade answers after both calls: vetoed where evals give latency_ms and a limit is exceeded)"
    )

    def marks(self, slo: Slo, assumed: Assumed) -> Mapping[str, str]:
        """Write the score that each request must reach, and the times that a cascade must hold.

        Args:
            slo: The service levels.
            assumed: Its assumptions.

        Returns:
            Column to SQL; NULL where nothing is stated.
        """
        return {
            "route_least_e12": least_e12(slo, cast("Decimal | None", assumed.values["min_quality"])),
            "route_ttft_us": by_feature(slo, lambda limits: _us(limits.ttft_p95_ms, 1_000)),
            "route_deadline_us": by_feature(slo, lambda limits: _us(limits.deadline_s, 1_000_000)),
        }

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Decide which requests go to the other model, and which lose their cache by that.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged; the whole answer where no traffic is named, or the other model has no price.

        Raises:
            AssumptionError: No model is named, keys contradict each other, or the evals cannot be read.
        """
        if assumed.where is None:
            return _none("no_assumption", NO_WHERE if assumed.has_table else NO_TABLE)
        _check(assumed)
        lacking = missing(self, bill)
        if lacking:
            return _none("not_measurable", lacking)
        evals = _evals(assumed)
        unpriced = self._lay_keys(bill, assumed)
        targets = _pairs(bill, "target_provider", assumed)
        if unpriced and not (evals.has("cost_pusd") and not lacking_models(evals, bill.session.book, targets)):
            return _none("not_measurable", f"[route] to_model has no price: {unpriced}")
        engine, book = bill.session.engine, bill.session.book
        register(engine, evals, book, targets, "lever_route_evals")
        register(engine, evals, book, _pairs(bill, "provider", assumed), "lever_route_own")
        self._lay_settings(bill, assumed)
        words = {"keys": _KEYS, "evals": "lever_route_evals", "own": "lever_route_own", "settings": _SETTINGS}
        steps.run(engine, _SCORED, materialised=True, lever=self.name, **words)
        steps.run(engine, "lever_route_trial", name=f"{_TRIAL}_judged", lever=self.name, scored=_SCORED)
        trial = Judged(f"{_TRIAL}_judged", knobs(self.name))
        tried(self, bill, trial, assumed, _TRIAL)
        self._judge(bill, _JUDGED, _SETTINGS)
        counts = found(bill, _JUDGED)
        charges = ("router_usd", "verifier")
        return Judged(
            _JUDGED,
            knobs(self.name),
            lasting=(f"{self.name}_way",),
            aside=aside(self.name),
            has_fee=any(assumed.values[key] for key in charges),
            is_ceiling=assumed.values["evals"] is None,
            is_ranged=counts.unknown_reads > 0,
        )

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Change the bill: routed requests become the other model's, escalated ones both, forfeited ones lose reads.

        Args:
            bill: The bill before.
            assumed: Its assumptions.

        Returns:
            The bill after.
        """
        ratios = (Fraction(assumed.number(key)) for key in ("token_ratio", "output_ratio"))
        told = _told(assumed, *ratios)._replace(sessionless_keeps=assumed.scenario != "low")
        return retold(bill, self.name, told, f"{bill.requests}_routed")

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        """Say which requests the other model answers well enough, and what the figure rests on.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.
            counted: What it did on its own, counted.

        Returns:
            Status, facts and advice.
        """
        counts = found(bill, _JUDGED)
        evals = _evals(assumed)
        lacking = lacking_models(evals, bill.session.book, _pairs(bill, "target_provider", assumed))
        unknown = unknown_names(bill.session.engine, evals)
        set_by = bars(bill, assumed, judged=_JUDGED, scored=_SCORED)
        status, reason = status_of(bill, assumed, counts, set_by, [*unknown, *lacking])
        label: Label = "measured" if assumed.values["evals"] is not None else "ceiling"
        facts = evidence(
            bill,
            assumed,
            counts,
            counted,
            evals,
            scored=_SCORED,
            judged=_JUDGED,
            trial=_TRIAL,
            same_tokens=self._same_tokens(bill, assumed, counts, counted, evals),
            otherwise=self._otherwise(bill, assumed, counts),
        )
        return Look(
            status,
            reason,
            label,
            counted.total("now_pusd", MOVED),
            None,
            facts,
            advice(assumed, counts, counted),
            applies=status == "ok" or (status == "no_assumption" and counts.routed > 0),
            left_out=counted.left_out("vetoed", "left out by the service levels"),
            notes=tuple(f"evals: {one}" for one in unknown),
        )

    def _judge(self, bill: Bill, name: str, settings: str) -> None:
        words = {"scored": _SCORED, "trial": _TRIAL, "settings": settings}
        steps.run(bill.session.engine, _JUDGED, name=name, materialised=True, lever=self.name, **words)

    def _lay_settings(self, bill: Bill, assumed: Assumed, name: str = _SETTINGS, *, turned: bool = False) -> None:
        values = assumed.values
        verifier = _verifier(assumed)
        row = {
            "has_evals": values["evals"] is not None,
            "is_cascade": bool(verifier),
            "is_sticky": bool(values["sticky"]) != turned,
            "cache": str(values["cache"]),
            "router_pusd": _pusd(values["router_usd"]),
            "verifier_pusd": _pusd(verifier.get("usd", Decimal(0))),
        }
        bill.session.engine.register(name, pl.DataFrame([row]))

    def _lay_keys(self, bill: Bill, assumed: Assumed) -> str:
        """Lay the key at the other model beside each of the log's; say why none has a price, where that is so."""
        session = bill.session
        used = set(session.engine.fetch("select distinct price_key from lever_base where in_route")["price_key"])
        model = str(assumed.values["to_model"])
        to_provider = assumed.values["to_provider"]
        moves: dict[int, dict[str, str]] = {}
        rows: list[dict[str, Any]] = []
        reasons: list[str] = []
        for key, provider, own, tier, region in session.keys:
            target = canonical_provider(str(to_provider)) if to_provider else provider
            is_same = target == provider and model_key(session.book, target, model) == model_key(
                session.book, provider, own
            )
            row = {"price_key": key, "provider": provider, "model": own, "target_provider": target, "is_same": is_same}
            rows.append(row)
            if key in used and not is_same:
                moves[key] = {"provider": target, "model": model, "region": region if target == provider else ""}
                match = session.book.match(target, model, tier, moves[key]["region"])
                reasons.append("" if match.lists else match.reason)
        made = session.add_keys(moves)
        frame = pl.DataFrame(
            [{**row, "target_key": made.get(row["price_key"], row["price_key"])} for row in rows],
            schema=_KEY_COLUMNS,
        )
        session.engine.register(_KEYS, frame)
        return reasons[0] if reasons and all(reasons) else ""

    def _saving(
        self, bill: Bill, assumed: Assumed, view: str, counts: Found, change: Route | _SameTokens, name: str
    ) -> int:
        tally = tried(change, bill, Judged(view, knobs(self.name)), assumed, name)
        return tally.total("now_pusd", MOVED) - tally.total("then_pusd", MOVED) - counts.fees

    def _same_tokens(self, bill: Bill, assumed: Assumed, counts: Found, counted: Tally, evals: Evals) -> int:
        is_measured = any(evals.has(column) for column in ("cost_pusd", "input_tokens", "output_tokens"))
        if not is_measured and all(assumed.number(key) == 1 for key in ("token_ratio", "output_ratio")):
            return counted.total("now_pusd", MOVED) - counted.total("then_pusd", MOVED) - counts.fees
        return self._saving(bill, assumed, _JUDGED, counts, _SameTokens(), "lever_route_same")

    def _otherwise(self, bill: Bill, assumed: Assumed, counts: Found) -> int | None:
        """Try the other of the two: whole sessions, or each request by itself. None where they cannot differ."""
        if assumed.values["verifier"] is not None or assumed.values["evals"] is None:
            return None
        self._lay_settings(bill, assumed, f"{_SETTINGS}_otherwise", turned=True)
        self._judge(bill, _OTHER, f"{_SETTINGS}_otherwise")
        other = found(bill, _OTHER)
        if other.routed == counts.routed:
            return None
        return self._saving(bill, assumed, _OTHER, other, self, f"{_OTHER}_tried")


class _SameTokens:
    """The same change with every token as it was billed: what prices alone make of it."""

    changed = CHANGED

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        name = f"{bill.requests}_same"
        measured = ("route_input", "route_output", "route_set_pusd")
        own = [f"cast(null as bigint) as {one}" if one in measured else one for one in bill.columns]
        bill.session.engine.step(f"{name}_given", f"select {', '.join(own)} from {bill.requests}")
        return retold(replace(bill, requests=f"{name}_given"), "route", _told(assumed, Fraction(1), Fraction(1)), name)


LEVER = Route()
_KEY_COLUMNS: dict[str, pl.DataType] = {
    "price_key": pl.Int32(),
    "provider": pl.String(),
    "model": pl.String(),
    "target_provider": pl.String(),
    "is_same": pl.Boolean(),
    "target_key": pl.Int32(),
}


def _none(status: Status, reason: str) -> Look:
    return Look(status, reason, "measured", None, None, (), TRY_IT, applies=False)


def _check(assumed: Assumed) -> None:
    if not str(assumed.values["to_model"] or "").strip():
        raise AssumptionError('[route]: to_model is missing: name the smaller model, such as to_model = "gpt-5-mini"')
    if assumed.values["sticky"] and assumed.values["verifier"] is not None:
        raise AssumptionError(
            "[route]: sticky is for a router; a cascade decides by each answer, so leave out sticky or verifier"
        )


def _evals(assumed: Assumed) -> Evals:
    file = assumed.values["evals"]
    return no_evals() if file is None else read_evals(cast("Path", file), "route")


def _verifier(assumed: Assumed) -> Mapping[str, Value]:
    return cast("Mapping[str, Value]", assumed.values["verifier"] or {})


def _told(assumed: Assumed, input_ratio: Fraction, output_ratio: Fraction) -> Retold:
    return Retold(
        input_ratio,
        output_ratio,
        keeps_writes=assumed.values["cache"] != "lose",
        has_candidate=bool(_verifier(assumed).get("candidate_in_prompt")),
    )


def _pairs(bill: Bill, provider: str, assumed: Assumed) -> list[tuple[str, str]]:
    model = "model" if provider == "provider" else None
    # of the traffic in where alone: a provider of other traffic needs no score
    frame = bill.session.engine.fetch(
        f"select distinct provider, model, target_provider from {_KEYS} "
        "where price_key in (select price_key from lever_base where in_route) order by all nulls last"
    )
    return [(row[provider], row[model] if model else str(assumed.values["to_model"])) for row in frame.rows(named=True)]


def _us(limit: float | None, per_unit: int) -> int | None:
    """A limit in whole microseconds; None where none is stated, it is lifted, or nothing can exceed it."""
    if limit is None or not math.isfinite(limit):
        return None
    us = math.floor(Fraction(str(limit)) * per_unit)
    return us if us < 2**62 else None


def _pusd(value: Value) -> int:
    return int(cast("Decimal", value) * PUSD_PER_USD)
