"""``tenfold levers``: every lever against this log, and the plan."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from tenfold import display, logs
from tenfold.analysis.cache_breaks import CacheBreaks, cache_breaks
from tenfold.analysis.cache_breaks.remedies import PARTS, Break
from tenfold.cli.common import (
    Db,
    From,
    Json,
    Prices,
    PricesOnly,
    Screen,
    To,
    Zone,
    book_of,
    instant,
    one_state,
    plain_table,
    print_json,
    report_zone,
    working,
)
from tenfold.cli.levers_recorded import (
    Control,
    ListRecorded,
    Record,
    Replace,
    Track,
    as_key,
    check_options,
    hold,
    kept,
    list_recorded,
    show_kept,
)
from tenfold.cli.serving_fleet import FleetFile, laid_on
from tenfold.errors import AssumptionError, NotEvaluable, StoreError
from tenfold.ledger import attribute
from tenfold.money import PUSD_PER_USD
from tenfold.planning import Plan, plan, recording
from tenfold.planning.repairing import with_breaks
from tenfold.slo import Slo

Assume = Annotated[Path | None, typer.Option("--assume", metavar="FILE", help="Assumptions (TOML), one table a lever.")]
SloFile = Annotated[
    Path | None, typer.Option("--slo", metavar="FILE", help="Service levels (TOML) that a plan must keep.")
]

Breaks = Annotated[
    bool,
    typer.Option(
        "--breaks",
        help="Also find what breaks the prompt cache, and what each break cost (JSON key cache_breaks); takes longer.",
    ),
]
# Rows of the table of breaks; the rest is summed.
_BREAKS = 10
# Characters of a saving with its range that leave the other columns their place.
_SHORT = 28


def levers(
    db: Db,
    assume: Assume = None,
    slo: SloFile = None,
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    track: Track = None,
    control: Control = None,
    record: Record = None,
    replace: Replace = False,
    recorded: ListRecorded = False,
    breaks: Breaks = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Estimate every lever on this log, leave out what the SLO forbids, and rank the plan that is left."""
    check_options(record=record, replace=replace, is_list=recorded, track=track)
    if breaks and track is not None:
        raise AssumptionError("--breaks is about this log alone: leave it out with --track")
    log = one_state(db) if record is None else logs.open_log(db)
    if recorded:
        list_recorded(log, json=json)
        return
    local = report_zone(zone)
    ledger = attribute(
        log,
        book_of(prices, only=prices_only),
        since=instant(from_, local, "--from"),
        until=instant(to, local, "--to"),
        zone=local,
    )
    ledger = laid_on(ledger, fleet)
    if track is not None:
        hold(log, ledger, track, control, json=json)
        return
    if record is not None:
        recording.check_free(log, record, replace=replace)
    with working("estimating the levers", json=json):
        found = plan(ledger, assume=assume, slo=Slo.load(slo) if slo else None)
    broken = cache_breaks(ledger) if breaks else None
    if broken is not None:
        found = with_breaks(found, broken)
    entry = kept(log, found, record, replace=replace) if record is not None and found.is_evaluable else None
    if json:
        beside = {} if broken is None else {"cache_breaks": broken.as_dict()}
        print_json({**found.as_dict(), **beside, **as_key(entry)})
    else:
        screen = Screen()
        show(screen, found)
        if broken is not None:
            show_breaks(screen, broken)
        show_kept(screen, entry)
    if isinstance(entry, StoreError):
        raise StoreError(f"the plan above was not recorded: {entry}") from entry
    if not found.is_evaluable:
        left = "" if record is None else ", so nothing was recorded"
        raise NotEvaluable(f"no lever can be measured on this log{left}; each says which column it misses")


def show(screen: Screen, found: Plan) -> None:
    """Print levers and plan, answers first.

    Args:
        screen: Where to print.
        found: The plan.
    """
    document = found.as_dict()
    screen.line(found.headline())
    screen.line()
    table = plain_table(
        ("#", True), ("lever", False), ("label", False), ("touches", True), ("saves alone\n[low mid high]", True),
        ("adds\nin plan", True), ("effort", True), ("risk", False), wraps=("label",),
        spare=("effort", "touches", "risk", "adds in plan"),
    )  # fmt: skip
    adds = {step["name"]: step["marginal_usd"] for step in document["plan"]["roadmap"]}
    # a range of large sums goes below its middle, so that the table fits a screen
    between = "\n[" if any(len(_saving(row)) > _SHORT for row in document["levers"]) else " ["
    for row in document["levers"]:
        table.add_row(
            str(row["number"]),
            row["name"],
            row["label"] if row["status"] == "ok" else row["status"].replace("_", " "),
            _touches(row),
            _saving(row).replace(" [", between),
            _dollars(adds.get(row["name"])),
            f"{row['effort_days']:g} d" if row["status"] == "ok" else "",
            row["risk"] if row["status"] == "ok" else "",
        )
    screen.table(table)
    if any(row["saving_usd"]["low"] is not None for row in document["levers"]):
        screen.line(f"[{document['interval']}]")
    for row in document["levers"]:
        screen.line()
        screen.said((f"{row['name']}, {heading}", text) for heading, text in _said(row))


def show_breaks(screen: Screen, broken: CacheBreaks) -> None:
    """Print what breaks the prompt cache, the dearest first, and what to do about each.

    Args:
        screen: Where to print.
        broken: The breaks.
    """
    ranked = broken.ranked()
    lost = sum(one.turns for one in ranked if one.label != "ceiling")
    gist = f"{display.small_dollars(broken.cost_pusd)} in {display.counted(lost, 'turn')}" if lost else "nothing found"
    screen.line()
    screen.line(f"What breaks the prompt cache: {gist}.")
    for columns, parts in _lacking(broken).items():
        screen.line(f"Not told without {columns}: {', '.join(parts)}.")
    if not ranked:
        return
    table = plain_table(("cause", False), ("feature", False), ("turns", True), ("tokens", True), ("cost", True))
    for one in ranked[:_BREAKS]:
        table.add_row(
            one.text, display.name_of("feature", one.feature), f"{one.turns:,}", f"{one.tokens:,}", _cost(one)
        )
    screen.line()
    screen.table(table)
    if rest := ranked[_BREAKS:]:
        pusd = sum(one.cost_pusd or 0 for one in rest if one.label != "ceiling")
        screen.line(f"{len(rest)} more in --json: {display.small_dollars(pusd)}")
    screen.line()
    screen.said(_to_do(ranked[:_BREAKS]))


def _to_do(ranked: Sequence[Break]) -> list[tuple[str, str]]:
    """Say what to do once a cause; where it differs by feature, with the features."""
    features: dict[tuple[str, str], list[str]] = {}
    for one in ranked:
        features.setdefault((one.text, one.to_do), []).append(display.name_of("feature", one.feature))
    texts = [text for text, _ in features]
    return [
        (text, to_do if texts.count(text) == 1 else f"{', '.join(named)}: {to_do}")
        for (text, to_do), named in features.items()
    ]


def _lacking(broken: CacheBreaks) -> dict[str, list[str]]:
    """Group what cannot be told by the columns that it lacks."""
    found: dict[str, list[str]] = {}
    for part, columns in broken.not_measurable.items():
        needs = " and ".join(columns).replace("texts.prompt", "kept texts (load with --keep-text)")
        found.setdefault(needs, []).append(PARTS[part])
    return found


def _cost(one: Break) -> str:
    if one.cost_pusd is None:
        return "no price"
    return f"{'at most ' if one.label == 'ceiling' else ''}{display.small_dollars(one.cost_pusd)}"


def _said(row: dict[str, Any]) -> list[tuple[str, str]]:
    said: list[tuple[str, str]] = []
    if row["as_billed_usd"] is not None:
        so_far = display.saved_or_lost(round(Decimal(row["as_billed_usd"]) * PUSD_PER_USD))
        said.append(("so far", f"caching {so_far} net of write premiums; in the bill already, not counted"))
    if row["reason"]:
        said.append(("why", row["reason"]))
    said += [("not touched", left["text"]) for left in row["left_out"]]
    if row["holdout_usd"] is not None:
        held = f"chosen on the earlier two thirds of the days; on the rest it saves {_dollars(row['holdout_usd'])}"
        said.append(("held out", held))
    if row["first_action"]:
        said.append(("first", row["first_action"]))
    if row["status"] == "ok":
        said += [("verify", row["verify"]), ("undo", row["undo"])]
    said.append(("rule of thumb", f"{row['rule_of_thumb']}{_here(row)}"))
    return said


def _here(row: dict[str, Any]) -> str:
    """Say what this log says beside the rule of thumb: spend over what is left of it, on what the lever touches."""
    addressed, saved = Decimal(row["addressed_usd"] or 0), Decimal(row["saving_usd"]["mid"] or 0)
    if row["status"] != "ok" or not addressed:
        return ""
    if saved >= addressed:
        return ". Here: nothing is left of what it touches"
    return f". Here: {addressed / (addressed - saved):.1f}x on what it touches"


def _saving(row: dict[str, Any]) -> str:
    saving = row["saving_usd"]
    if saving is None or saving["mid"] is None or (row["status"] != "ok" and row["label"] != "ceiling"):
        return ""
    ends = "" if saving["low"] is None else f" [{_dollars(saving['low'])} to {_dollars(saving['high'])}]"
    return _dollars(saving["mid"]) + ends


def _touches(row: dict[str, Any]) -> str:
    """Leave out a zero that only says that nothing was assumed."""
    is_blank = row["status"] == "no_assumption" and not Decimal(row["addressed_usd"] or 0)
    return "" if is_blank else _dollars(row["addressed_usd"])


def _dollars(text: str | None) -> str:
    return "" if text is None else display.dollars(text)
