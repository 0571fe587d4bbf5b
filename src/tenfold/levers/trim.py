"""Lever 6: shorter prompts and shorter answers, each removed token worth what its class was billed at."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Literal

import polars as pl

from tenfold.levers import trim_evidence
from tenfold.levers.base import Advice, Assumed, Assumption, Bill, Judged, Look, Scenario, Stage
from tenfold.levers.cutting import CUT
from tenfold.levers.evals import Evals, read_evals
from tenfold.levers.pairs import Measured, Pairs, mean_scores, pairs
from tenfold.levers.repricing import missing
from tenfold.levers.scoring import least_score
from tenfold.levers.tally import Tally
from tenfold.levers.tokens import LONG, OUTPUT_MEDIA, WRITE, half_even, summed, text_read, text_uncached
from tenfold.levers.values import Range, amount, choice, count, path, ratio, share
from tenfold.slo import Slo
from tenfold.store import steps
from tenfold.store.database import quoted

_STEP = "lever_trim"
_JUDGED = "lever_trim_judged"
_NEEDS = ("output_tokens",)
_STATED = ("input_remove_ratio", "output_ratio", "output_cap")
_SCENARIOS: tuple[Scenario, ...] = ("low", "mid", "high")


class Trim:
    """Shorter prompts and answers: a stated share, a cap, or what a paired sample shows."""

    name = "trim"
    number = 6
    stage = Stage.PROMPT
    needs = (("input_tokens",), ("output_tokens",))
    columns: tuple[str, ...] = ("finish_reason",)
    changed = (
        *("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens"),
        *("output_tokens", "reasoning_tokens", CUT),
    )
    assumptions = (
        Assumption(
            "input_remove_ratio",
            Range(*[Decimal(0)] * 3),
            "share of every class of input that goes, 0 to 1",
            "nothing is removed; what others report is no figure for your prompts",
            conservative=True,
            read=share,
        ),
        Assumption(
            "output_ratio",
            Range(*[Decimal(1)] * 3),
            "answers' length after, as a multiple",
            "answers stay as long; what others report is no figure for yours",
            conservative=True,
            read=ratio,
            falls=True,
        ),
        Assumption("output_cap", None, "tokens an answer has at most", "no limit", conservative=True, read=count),
        Assumption(
            "cut",
            "tail",
            "tail or head: where prompts lose text",
            "the cached head of a prompt stays what it is",
            conservative=False,
            read=choice("tail", "head"),
        ),
        Assumption(
            "evals",
            None,
            "file: request_id, output_tokens after, input_tokens after, score, finish_reason, feature",
            "no sample",
            conservative=True,
            read=path,
        ),
        Assumption(
            "min_quality",
            None,
            "lowest mean score of the sample",
            "slo.toml's, else none",
            conservative=True,
            read=amount,
        ),
    )
    conflicts: tuple[str, ...] = ()
    effort_days = Decimal(3)
    risk: Literal["low", "medium", "high"] = "medium"
    reversible = True
    rule_of_thumb = (
        "2-5x by compressing prompts: counts tokens at list price; leaves out that a cached token is worth a tenth of "
        "that, that answers cost as before, the rewritten cache, and quality"
    )
    slo_effect = "unknown"

    def allowed(self, slo: Slo, assumed: Assumed) -> str:
        """Write which requests the service levels leave to this lever: those of which the shorter answers are good.

        Args:
            slo: The service levels.
            assumed: Its assumptions.

        Returns:
            A SQL condition: by feature, whether the sample's mean score reaches the larger of its own ``min_quality``
            and the service level's. All, where there is no sample or no such level.
        """
        evals = _evals(assumed)
        if evals is None:
            return "true"
        means = mean_scores(evals)

        def is_good(feature: str | None) -> bool:
            stated = (assumed.values["min_quality"], slo.limits(feature).min_quality)
            levels = [least_score(level) for level in stated if isinstance(level, Decimal | float | int)]
            score = means.get(feature, means.get(None))
            return not levels or (score is not None and score >= max(levels))

        rest = is_good(None)
        features = sorted({*slo.feature, *(name for name in means if name is not None)})
        other = [quoted(name) for name in features if is_good(name) != rest]
        word, opposite = str(rest).lower(), str(not rest).lower()
        return f"case when feature in ({', '.join(other)}) then {opposite} else {word} end" if other else word

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Find the requests to shorten, and by how much.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged; the whole answer where nothing is assumed.
        """
        if assumed.where is None or not assumed.stated.intersection((*_STATED, "evals")):
            return _without("no_assumption", _NO_WHERE if assumed.where is None else _NO_RATIO)
        lacking = missing(self, bill)
        if lacking:
            return _without("not_measurable", lacking)
        sample = _sample(bill, assumed)
        if sample is not None and not sample.groups and not assumed.stated.intersection(_STATED):
            why = f"none of the {sample.rows:,} rows of {assumed.values['evals']} has the id of one billed request"
            return _without("not_measurable", why)
        ends = {scenario: _ratios(sample, assumed.at(scenario)) for scenario in _SCENARIOS}
        for scenario, rows in ends.items():
            bill.session.engine.register(f"{_STEP}_ratios_{scenario}", pl.DataFrame(rows, schema=_PARTS, orient="row"))
        named = [(feature, number) for number, feature in enumerate(_features(sample), 1)]
        schema = {"feature": pl.String(), "trim_group": pl.Int32()}
        bill.session.engine.register(f"{_STEP}_groups", pl.DataFrame(named, schema=schema, orient="row"))
        steps.run(bill.session.engine, _JUDGED, groups=f"{_STEP}_groups")
        is_ranged = any(rows != ends["mid"] for rows in ends.values())
        return Judged(_JUDGED, ("trim_group", "trim_is_truncated", CUT), lasting=(CUT,), is_ranged=is_ranged)

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Change the bill: every class of input loses its share, answers take their ratio and the cap.

        Args:
            bill: The bill before.
            assumed: Its assumptions.

        Returns:
            The bill after.
        """
        name = f"{bill.requests}_trimmed"
        _edit(bill, assumed, name)
        return replace(bill, requests=name)

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        """Say what goes, what each class of it is worth, and what stands against it.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.
            counted: What it did on its own, counted.

        Returns:
            Status, facts and advice.
        """
        sample = _sample(bill, assumed)
        own = replace(bill, requests=f"{_STEP}_own", columns=(*bill.columns, "trim_group", "trim_is_truncated", CUT))
        bill.session.engine.step(
            own.requests,
            f"select b.*, j.trim_group, j.trim_is_truncated, j.{CUT} "
            f"from lever_base as b join {_JUDGED} as j on b.rid = j.rid where j.fate = 'touched'",
        )
        _edit(own, assumed.at("mid"), f"{_STEP}_edited")
        return trim_evidence.found(bill, assumed, counted, sample, _evals(assumed), f"{_STEP}_edited", _JUDGED)


LEVER = Trim()
_PARTS: dict[str, pl.DataType] = {
    "trim_group": pl.Int32(),
    **dict.fromkeys(("remove_num", "remove_den", "output_num", "output_den"), pl.Int64()),
}
_NO_WHERE = "no assumption yet: name the traffic as `where` of [trim], and how much shorter it may be"
_NO_RATIO = (
    "no assumption yet: say in [trim] how much shorter it may be: input_remove_ratio, output_ratio, output_cap, or "
    "evals (a paired sample)"
)
_SAMPLE_IT = Advice(
    "Answer a hundred logged requests again with the shorter prompt, and write request_id, output_tokens, input_tokens "
    "and a score of each to a file that [trim] evals names.",
    "Load a day with both versions and compare tokens and scores request by request.",
    "Nothing to undo.",
)


def _without(status: Literal["not_measurable", "no_assumption"], reason: str) -> Look:
    return Look(status, reason, "modelled", None, None, (), _SAMPLE_IT, applies=False)


def _evals(assumed: Assumed) -> Evals | None:
    file = assumed.values["evals"]
    return read_evals(file, "trim", _NEEDS) if isinstance(file, Path) else None


def _sample(bill: Bill, assumed: Assumed) -> Pairs | None:
    evals = _evals(assumed)
    return None if evals is None else pairs(bill.session.engine, evals, bill.session.book)


def _features(sample: Pairs | None) -> list[str]:
    groups = () if sample is None else sample.groups
    return [group.feature for group in groups if group.feature is not None]


def _ratios(sample: Pairs | None, assumed: Assumed) -> list[tuple[int, ...]]:
    """Give each group its ratios: the sample's where it has any, else as assumed. Group 0 is everything else."""
    rows: list[tuple[int, ...]] = []
    for number, feature in enumerate([None, *_features(sample)]):
        group = None if sample is None else sample.of(feature)
        remove = Fraction(assumed.number("input_remove_ratio"))
        output = Fraction(assumed.number("output_ratio"))
        if group is not None and group.input is not None:
            remove = 1 - _end(group.input, assumed.scenario)
        if group is not None and group.output is not None:
            output = _end(group.output, assumed.scenario)
        rows.append((number, remove.numerator, remove.denominator, output.numerator, output.denominator))
    return rows


def _end(measured: Measured, scenario: Scenario) -> Fraction:
    """Take the end of a measured ratio that a scenario takes: the largest saves least."""
    least, exact, most = measured.ends()
    return {"low": most, "mid": exact, "high": least}[scenario]


def _edit(bill: Bill, assumed: Assumed, name: str) -> None:
    held = bill.columns

    def removed(tokens: str) -> str:
        return half_even(tokens, "p.remove_num", "p.remove_den")

    def kept(tokens: str) -> str:
        return half_even(tokens, "p.out_num", "p.out_den")

    media = summed(OUTPUT_MEDIA, held)
    steps.run(
        bill.session.engine,
        _STEP,
        name=name,
        requests=bill.requests,
        ratios=f"{_STEP}_ratios_{assumed.scenario}",
        columns=",\n  ".join(held),
        capped=_capped(assumed.values["output_cap"]),
        cut=str(assumed.values["cut"]),
        removed_text=removed(text_uncached(held)),
        removed_read=removed(text_read(held)),
        removed_write=removed(WRITE),
        removed_long=removed(LONG),
        output_media=media,
        answer=kept(f"p.output_tokens - ({media})"),
        reasoning=kept("p.reasoning_tokens"),
    )


def _capped(cap: object) -> str:
    """Hold an answer's text to the cap; media are no text."""
    if not isinstance(cap, int):
        return "answer"
    room = f"case when {cap} > output_media then {cap} - output_media else 0 end"
    return f"case when answer > {room} then {room} else answer end"
