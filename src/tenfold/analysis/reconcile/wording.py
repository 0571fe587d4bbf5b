"""What shows each cause, in words with figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from tenfold.analysis.reconcile.elsewhere import left_out_of
from tenfold.analysis.reconcile.fitting import KIND_WORDS, Fit
from tenfold.analysis.reconcile.invoiced import LeftOut
from tenfold.analysis.reconcile.logged import BILLED, start_of
from tenfold.analysis.reconcile.parts import Part
from tenfold.analysis.reconcile.result import CAUSES, Cause
from tenfold.analysis.reconcile.splitting import Report
from tenfold.display import counted, number
from tenfold.money import shown
from tenfold.prices.meters import meters

_UNITS = {meter.name: meter.unit for meter in meters()}
# Things that a line of evidence names.
_NAMED = 5


class Held(NamedTuple):
    """A report that was split.

    Args:
        report: The report.
        fit: How it is made of the log.
        parts: Its cells.
    """

    report: Report
    fit: Fit
    parts: list[Part]


def causes(held: Iterable[Held]) -> tuple[Cause, ...]:
    """Sum the causes of all reports, with what shows each.

    Args:
        held: Reports, how each is made of the log, and its cells.

    Returns:
        Causes that occur, in the order of ``CAUSES``.
    """
    sums: dict[str, int] = dict.fromkeys(CAUSES, 0)
    occurs: set[str] = set()
    evidence: dict[str, list[str]] = defaultdict(list)
    for one in held:
        for part in one.parts:
            for cause, pusd in part.explained.items():
                sums[cause] += pusd
                if pusd:
                    occurs.add(cause)
        for cause, lines in one.report.evidence.items():
            evidence[cause] += lines
        for cause, words in _WORDS.items():
            own = [part for part in one.parts if part.explained.get(cause)]
            if own:
                evidence[cause] += words(one._replace(parts=own))
    return tuple(Cause(name, sums[name], tuple(evidence[name])) for name in CAUSES if name in occurs)


def _money(parts: Iterable[Part], cause: str) -> str:
    return shown(sum(part.explained[cause] for part in parts))


def _tiers(held: Held) -> list[str]:
    report, fit, _ = held
    tiers = ", ".join(sorted(fit.structure.tiers))
    known = "the report names its tiers" if report.stated_tiers else f"without it {_agreeing(report, fit)}"
    return [f"{report.provider}: tier {tiers} is in the log, and the report leaves it out ({known})"]


def _agreeing(report: Report, fit: Fit) -> str:
    fitter = report.fitter
    agrees = sum(fitter.deviation(cell, fitter.told(cell, fit.structure)) <= 4 for cell in fitter.cells)
    return f"{agrees:,} of {counted(len(fitter.cells), 'amount')} agree with the log"


def _days(held: Held) -> list[str]:
    report, fit, parts = held
    said: list[str] = []
    odd = [report.periods[place] for place in sorted({part.place for part in parts}) if report.periods[place].is_odd]
    said += [
        f"{report.provider}: the report says that its {one.name} runs from {one.stated_start:%Y-%m-%d %H:%M} "
        f"to {one.stated_end:%Y-%m-%d %H:%M} UTC"
        for one in odd[:_NAMED]
    ]
    if fit.structure.shift:
        begin = f"begin {_clock(fit.structure.shift)}"
        said.append(f"{report.provider}: all days of the report {begin} (so {_agreeing(report, fit)})")
    by_cut: dict[str, list[str]] = defaultdict(list)
    for place, first, last in fit.structure.shifts:
        since, until = fit.structure.span(place, report.periods[place])
        spans = f"{start_of(since):%m-%d %H:%M} to {start_of(until):%m-%d %H:%M} UTC"
        how = _clock(first) if first == last else f"runs from {spans}"
        by_cut[f"begins {how}" if first == last else how].append(report.periods[place].name)
    for how, names in by_cut.items():
        verb = how if len(names) == 1 else how.replace("begins", "begin", 1)
        said.append(f"{report.provider}: the report's {_listed(names)} {verb}")
    return said


def _clock(shift: int) -> str:
    """Say by how much a day is moved, and what zone would do it."""
    hours = abs(shift) / 2
    zone = f"UTC{'-' if shift > 0 else '+'}{int(hours):d}{':30' if shift % 2 else ''}"
    return f"{hours:g} h {'later' if shift > 0 else 'earlier'}, as a day of {zone} does"


def _usage(held: Held) -> list[str]:
    report, fit, parts = held
    spans = {(part.key[0], part.place) for part in parts}
    count = 0
    for model, place in spans:
        span = fit.structure.span(place, report.periods[place])
        count += sum(n for _, n in report.book.without_usage(model, span, fit.structure.wants))
    extra = [part.extra for part in parts if part.extra is not None]
    there = _money(parts, "usage_missing")
    if extra and len(extra) == len(parts):
        are_tokens = all(_UNITS.get(part.key[1] or "", "tokens") == "tokens" for part in parts)
        there += f" ({sum(extra):,} {'tokens' if are_tokens else 'tokens and other units'})"
    have = "request has" if count == 1 else "requests have"
    lost = f"{count:,} {have} no token counts in the log (an interrupted stream, say)"
    more = f"the report bills {there} more than the log on their days, about what so many requests of these models cost"
    said = [f"{report.provider}: {lost}; {more}"]
    unknown = sorted({part.key[0] or "" for part in parts if part.key not in report.book.series})
    if unknown:
        none = f"no request of {_listed(unknown)} has token counts in the log"
        said.append(f"{report.provider}: {none}, so the amount cannot be checked")
    return said


def _kinds(*kinds: str) -> Callable[[Held], list[str]]:
    def words(held: Held) -> list[str]:
        report, fit, _ = held
        changed = [kind for kind in kinds if (kind in BILLED) != (kind in fit.structure.billed)]
        return [f"{report.provider}: {KIND_WORDS[kind]} (so {_agreeing(report, fit)})" for kind in changed]

    return words


def _duplicates(held: Held) -> list[str]:
    report = held.report
    twice = report.aside.get("duplicates", [])
    said = _kinds("repeat")(held)
    if twice:
        places = _listed([line.place for line in twice])
        rows = f"{counted(len(twice), 'row')} {'is' if len(twice) == 1 else 'are'}"
        said.append(f"{report.provider}: {rows} in an earlier file too, with the same amount: {places}")
    return said


def _unpriced(held: Held) -> list[str]:
    report, _, parts = held
    models = _listed(sorted({part.key[0] or "all models" for part in parts}))
    bills = f"the report bills {_money(parts, 'unpriced')} for it"
    return [f"{report.provider}: the price book has no price for {models}; {bills}"]


def _rates(held: Held) -> list[str]:
    report, fit, parts = held
    said: list[str] = []
    by_series: dict[tuple[str | None, str | None], list[Part]] = defaultdict(list)
    for part in parts:
        by_series[part.key].append(part)
    for (model, meter), own in sorted(
        by_series.items(), key=lambda item: -abs(sum(p.explained["rates"] for p in item[1]))
    ):
        name = " ".join(word for word in (model, meter) if word) or "all"
        billed = sum(part.invoiced - part.aside for part in own)
        units = sum(part.units or 0 for part in own)
        logged, cost = (sum(part.told[place] for part in own) for place in (0, 1))
        if units and cost and all(part.units for part in own):
            share = Fraction(billed * logged, units * cost)
            said.append(
                f"{report.provider}: {name} is billed at {_rate(billed, units)} per million, the log's price is "
                f"{_rate(cost, logged)} ({number(share * 100, 2)} %)"
            )
            continue
        for key, over, under in fit.structure.rates:
            if key == (model, meter):
                said.append(
                    f"{report.provider}: {name} is billed at {number(Fraction(over, under) * 100, 3)} % of the log's "
                    "cost in most periods; the report has no token counts to check that with"
                )
    return said[: 2 * _NAMED]


def _rate(pusd: int, units: int) -> str:
    return "$" + number(Fraction(pusd, units) / 10**6, 4)


def _not_in_log(held: Held) -> list[str]:
    report, _, parts = held
    silent = {part.place for part in parts if report.is_silent(report.periods[part.place])}
    days = [report.periods[place].name for place in sorted(silent)]
    said = [f"{report.provider}: the log has no request in {_listed(days)}"] if days else []
    names = {part.key[0] or part.key[1] or "" for part in parts if part.place not in silent and part.lines}
    logged = {key[0] for key in report.book.series}
    models = sorted(name for name in names if name not in logged)
    if models:
        said.append(f"{report.provider}: the log has no request of {_listed(models)}")
    meters = sorted({_name(part.key) for part in parts if part.lines and part.key[0] in logged
                     and part.key not in report.book.series and part.place not in silent})  # fmt: skip
    return [*said, *([f"{report.provider}: the log has nothing of {_listed(meters)}"] if meters else [])]


def _not_in_report(held: Held) -> list[str]:
    report, _, parts = held
    said: list[str] = []
    left_out = {one: part for part in parts for one in left_out_of(report, part)}
    by_row: dict[tuple[str, str], dict[LeftOut, str]] = defaultdict(dict)
    for one, part in left_out.items():
        by_row[one.model or "all models", one.reason][one] = report.periods[part.place].name
    for (model, reason), rows in by_row.items():
        days, places = _listed(sorted(set(rows.values()))), _listed([one.place for one in rows])
        some = f"a row of {model} for {days} was" if len(rows) == 1 else f"{len(rows)} rows of {model} for {days} were"
        said.append(f"{report.provider}: {some} left out: {reason} ({places})")
    others = [part for part in parts if not left_out_of(report, part)]
    days = [report.periods[place].name for place in sorted({part.place for part in others})
            if not report.periods[place].is_reported]  # fmt: skip
    said += [f"{report.provider}: the report has no row for {_listed(days)}"] if days else []
    models = sorted({part.key[0] or "" for part in others} - {model or "" for model in report.models_told})
    said += [f"{report.provider}: the report has no row of {_listed(models)}"] if models else []
    missing: dict[str, list[str]] = defaultdict(list)
    for part in sorted(others, key=lambda part: part.place):
        if part.key[0] in report.models_told and report.periods[part.place].is_reported:
            missing[_name(part.key)].append(report.periods[part.place].name)
    said += [f"{report.provider}: the report has no row of {name} for {_listed(missing[name])}"
             for name in sorted(missing)[: 2 * _NAMED]]  # fmt: skip
    return said


def _name(key: tuple[str | None, str | None]) -> str:
    return " ".join(word for word in key if word) or "any model"


def _rounding(held: Held) -> list[str]:
    report, _, parts = held
    verb = "differs" if len(parts) == 1 else "differ"
    return [f"{report.provider}: {counted(len(parts), 'amount')} {verb} by less than the report's last digit"]


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


_WORDS: Mapping[str, Callable[[Held], list[str]]] = {
    "tier_missing": _tiers,
    "day_boundaries": _days,
    "usage_missing": _usage,
    "retries": _kinds("retry"),
    "failed_calls": _kinds("failed", "not_billed"),
    "gateway_hits": _kinds("gateway"),
    "duplicates": _duplicates,
    "unpriced": _unpriced,
    "rates": _rates,
    "not_in_log": _not_in_log,
    "not_in_report": _not_in_report,
    "rounding": _rounding,
}
