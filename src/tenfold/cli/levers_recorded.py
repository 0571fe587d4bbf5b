"""Plans that ``tenfold levers`` recorded: keeping one, listing them, holding one against this log."""

from __future__ import annotations

import json as json_reader
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from tenfold.cli.common import Screen, plain_table, print_json
from tenfold.display import dollars, minute, name_of
from tenfold.errors import AssumptionError, StoreError
from tenfold.ledger import Ledger
from tenfold.logs import Log
from tenfold.money import usd_text
from tenfold.planning import Plan, recording, tracking
from tenfold.planning.recording import Recorded, quoted

Record = Annotated[
    str | None,
    typer.Option("--record", metavar="NAME", help="Keep this plan in the database; the next review reads it."),
]
Replace = Annotated[bool, typer.Option("--replace", help="With --record: in place of a recorded plan of that name.")]
ListRecorded = Annotated[bool, typer.Option("--recorded", help="List the plans that were recorded, and nothing else.")]
Track = Annotated[
    str | None,
    typer.Option(
        "--track",
        metavar="PLAN",
        help="Hold an earlier plan against this log: the name of a recorded one, or a file with its --json.",
    ),
]

Control = Annotated[
    str | None,
    typer.Option("--control", metavar="SQL", help="With --track: the requests that were held back, as a predicate."),
]


def check_options(*, record: str | None, replace: bool, is_list: bool, track: str | None) -> None:
    """Refuse options that ask for different things.

    Args:
        record: Value of ``--record``.
        replace: Whether ``--replace`` was given.
        is_list: Whether ``--recorded`` was given.
        track: Value of ``--track``.

    Raises:
        AssumptionError: Two of them exclude each other.
    """
    asked = {"--record": record is not None, "--recorded": is_list, "--track": track is not None}
    given = [name for name, is_given in asked.items() if is_given]
    if len(given) > 1:
        raise AssumptionError(f"{' and '.join(given)} are different questions: ask them one at a time")
    if replace and record is None:
        raise AssumptionError("--replace is about the name of --record: give both")


def hold(log: Log, ledger: Ledger, text: str, control: str | None, *, json: bool) -> None:
    """Hold an earlier plan against this log, and print what came of it.

    Args:
        log: The log in whose store plans are kept.
        ledger: It, priced.
        text: A recorded plan's name, else a path; ``./NAME`` tells a file from a plan of that name.
        control: Value of ``--control``.
        json: Print one JSON document.

    Raises:
        AssumptionError: There is neither, or the file is no plan.
    """
    found = recording.find(log, text)
    document = _document(log, text) if found is None else found.document
    result = tracking.track(document, ledger, control=control)
    if json:
        where = {"file": text} if found is None else {"name": found.name, "recorded_at": found.recorded_at.isoformat()}
        print_json({"tracked": where, **result.as_dict()})
        return
    screen = Screen()
    if found is not None:
        screen.line(f'Plan "{quoted(found.name)}" of {found.window}, recorded {minute(found.recorded_at)}.')
    show_tracked(screen, result)


def _document(log: Log, text: str) -> dict[str, Any]:
    path = quoted(text)
    try:
        found = json_reader.loads(Path(text).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise AssumptionError(f"{path}: neither a recorded plan nor a file.{recording.there_are(log, text)}") from error
    except OSError as error:
        raise AssumptionError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise AssumptionError(f"{path}: not JSON: {error}. Save a plan with: tenfold levers --json > PLAN") from error
    if not isinstance(found, dict):
        raise AssumptionError(f"{path}: not a plan. Save one with: tenfold levers --json > PLAN")
    return cast("dict[str, Any]", found)


def kept(log: Log, plan: Plan, name: str, *, replace: bool) -> Recorded | StoreError:
    """Record a plan.

    Args:
        log: The log in whose store it is kept.
        plan: The plan.
        name: What to call it.
        replace: Take the place of a recorded plan of that name.

    Returns:
        What was recorded; or why the store could not be written, to be raised once the plan was shown.

    Raises:
        AssumptionError: The name is taken.
    """
    try:
        return recording.record(plan, log, name, replace=replace)
    except StoreError as error:
        return error


def as_key(entry: Recorded | StoreError | None) -> dict[str, Any]:
    """Give what was recorded as a key of ``tenfold levers --json``.

    Args:
        entry: What came of recording.

    Returns:
        ``recorded``, or nothing.
    """
    return {"recorded": entry.as_dict()} if isinstance(entry, Recorded) else {}


def show_kept(screen: Screen, entry: Recorded | StoreError | None) -> None:
    """Print that a plan was recorded, where it was.

    Args:
        screen: Where to print.
        entry: What came of recording.
    """
    if not isinstance(entry, Recorded):
        return
    line = f'Recorded as "{quoted(entry.name)}" at {minute(entry.recorded_at)}'
    line += f", prices {entry.card_version[:12]}, log {entry.log_hash[:12]}."
    if not entry.levers:
        line += " It has no lever, so it promises nothing that could be tracked."
    screen.line()
    screen.line(line)


def list_recorded(log: Log, *, json: bool) -> None:
    """Print the plans that were recorded.

    Args:
        log: The log in whose store they are kept.
        json: Print one JSON document.
    """
    plans = recording.recorded(log)
    if json:
        print_json({"plans": [one.as_dict() for one in plans]})
        return
    screen = Screen()
    if not plans:
        screen.line("No plan was recorded: tenfold levers --record NAME keeps one.")
        return
    table = plain_table(
        ("plan", False), ("recorded, UTC", False), ("window", False), ("saves\n[low to high]", True), ("levers", False),
        ("prices", False), ("log", False), wraps=("plan", "levers"),
    )  # fmt: skip
    for one in plans:
        table.add_row(
            quoted(one.name), f"{one.recorded_at:%Y-%m-%d %H:%M}", one.window.replace(" to ", "\nto "), _saves(one),
            ", ".join(one.levers) or "none", one.card_version[:8], one.log_hash[:8],
        )  # fmt: skip
    screen.table(table)


def _saves(plan: Recorded) -> str:
    saving: Mapping[str, str | None] = plan.document["plan"]["saving_usd"]
    low, mid, high = (saving[end] for end in ("low", "mid", "high"))
    if mid is None:
        return ""
    return dollars(mid) + ("" if low is None else f"\n[{dollars(low)} to {dollars(high)}]")


def show_tracked(screen: Screen, kept: tracking.Tracked) -> None:
    """Print what was promised and what was realised.

    Args:
        screen: Where to print.
        kept: The plan's promise against this log.
    """
    document = kept.as_dict()
    realised = document["realised_usd"]
    ends = "" if realised["low"] is None else f" [{dollars(realised['low'])} to {dollars(realised['high'])}]"
    promised = f"Promised {dollars(document['promised_usd'])} for these requests"
    screen.line(f"{promised}, realised {dollars(realised['mid'])}{ends} ({kept.label}).")
    screen.line(f"Baseline: {kept.baseline}.")
    if kept.price_change_pusd:
        fell = "took off" if kept.price_change_pusd > 0 else "added"
        screen.line(f"Changed prices {fell} {dollars(usd_text(abs(kept.price_change_pusd)))} more: in neither figure.")
    screen.line()
    table = plain_table(
        ("feature", False), ("requests", True), ("cost", True), ("would have cost", True), ("promised", True),
        ("realised", True),
    )  # fmt: skip
    for row in document["features"]:
        table.add_row(
            name_of("feature", row["feature"]), f"{row['requests']:,}", dollars(row["cost_usd"]),
            dollars(row["expected_usd"]), dollars(row["promised_usd"]), dollars(row["realised_usd"]),
        )  # fmt: skip
    screen.table(table)
    for feature in kept.unseen:
        screen.line(f"Not in this log: {feature}")
    for note in kept.notes:
        screen.line(f"Note: {note}")
