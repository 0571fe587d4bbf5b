"""``tenfold diagnose``: why latency moved between two windows of requests, and what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenfold import logs
from tenfold.cli import completion
from tenfold.cli.common import Json, Screen, Zone, instant, print_json, report_zone, shell, working
from tenfold.cli.load import constants
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.extras import need

if TYPE_CHECKING:
    from tenfold.latency.diagnosis import Diagnoses
    from tenfold.latency.proposing import Proposal

Before = Annotated[
    list[str] | None,
    typer.Option(
        "--before",
        metavar="SPEC",
        help="The window that was fine: FILE.duckdb@FROM..TO, or log files (give the option again for more).",
    ),
]
After = Annotated[
    list[str] | None, typer.Option("--after", metavar="SPEC", help="The window in question, written as --before.")
]
Db = Annotated[
    Path | None, typer.Option("--db", metavar="FILE", help="A database, with --around or --find: windows are proposed.")
]
Around = Annotated[
    str | None, typer.Option("--around", metavar="T", help="With --db: when it got slow, such as 2026-09-08T14:00.")
]
Find = Annotated[bool, typer.Option("--find", help="With --db: look for the clearest change of the tail.")]
Where = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="SQL", help="Whose latencies are looked at, as a predicate: \"feature = 'agent'\"."
    ),
]
Events = Annotated[
    Path | None, typer.Option("--events", metavar="FILE", help="What was done: columns ts, kind, what, where.")
]
Hosts = Annotated[
    Path | None, typer.Option("--hosts", metavar="FILE", help="Samples of hosts: columns ts, replica, metric, value.")
]
Metrics = Annotated[
    Path | None,
    typer.Option("--metrics", metavar="FILE", help="Samples of engines, as --hosts, or saved text of /metrics."),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Two systems side by side (A: --before, B: --after), no cause claimed.")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="F.html", help="Also write a page with the charts; needs no network.")
]
Map = Annotated[Path | None, typer.Option("--map", metavar="FILE", help="Map (TOML) of a log file's own columns.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="COLUMN=VALUE", help="What the lines of a log file cannot say.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Reader of log files; default: by content.",
        autocompletion=completion.formats,
    ),
]


def diagnose(
    before: Before = None, after: After = None, db: Db = None, around: Around = None, find: Find = False,
    where: Where = None, events: Events = None, hosts: Hosts = None, metrics: Metrics = None,
    compare: Compare = False, out_file: Out = None, zone: Zone = None, map: Map = None, set: Set = None,
    format: Format = None, json: Json = False,
) -> None:  # fmt: skip
    """Say what moved the p99 between two windows, by how much and what to do next, or why that cannot be told."""
    need("numpy", what="a diagnosis", extra="serving")
    local = report_zone(zone)
    reading = {"map": map, "format": format, "set": constants(set) if set else None}
    reading = {name: value for name, value in reading.items() if value is not None}
    _check_asked(before, after, db, around, find=find)
    if compare:
        if any((db, events, hosts, metrics, out_file)):
            raise AssumptionError("--compare takes --before, --after and --where alone: it looks for no cause")
        _compare(_specs(before, after), where, local, reading, json=json)
        return
    proposal = None
    if db is not None:
        with working("looking for the windows", json=json):
            proposal = _proposal(db, instant(around, local, "--around"), where)
        if proposal is None:
            _tell_calm(db, where, json=json)
            return
    from tenfold.latency.diagnosis import answers_of
    from tenfold.latency.windows import read_pair

    windows = _specs(before, after) if proposal is None else (proposal.before, proposal.after)
    with working("reading the windows", json=json):
        pairs = read_pair(
            *windows, where=where, events=events, hosts=hosts, metrics=metrics, zone=local, reading_options=reading
        )
    with working("going through the seven steps", json=json):
        found = answers_of(pairs.pairs, pairs.mix, pairs.notes)
    texts = _specs(before, after) if proposal is None else ([proposal.before.text], [proposal.after.text])
    options: dict[str, Sequence[str] | str | Path | None] = {
        "--before": texts[0], "--after": texts[1], "--where": where, "--events": events, "--hosts": hosts,
        "--metrics": metrics, "--zone": zone, "--map": map, "--set": set, "--format": format,
    }  # fmt: skip
    command = _command(options)
    if json:
        proposed = {} if proposal is None else {"proposed": _told(proposal)}
        written = {} if out_file is None else {"out": str(out_file)}
        print_json({**found.as_dict(), **proposed, **written})
    else:
        _show(found, proposal, out_file, where, command)
    if out_file is not None:
        from tenfold.reviewing.diagnosed import Asked, diagnosis_page

        sys.stdout.flush()  # the answer is there, whatever becomes of the page
        asked = Asked(texts[0], texts[1], where, f"{command} --out {shell(str(out_file))}")
        diagnosis_page(found, {pair.model: pair for pair in pairs.pairs}, asked).save(out_file)
    if found.main.verdict == "refused":
        # people have read why in the first line
        why = found.main.refused if json else "no diagnosis: why, and what would help, is said above"
        raise NotEvaluable(why or "the windows cannot carry a diagnosis")


def _command(options: Mapping[str, Sequence[str] | str | Path | None]) -> str:
    """Write the command that compares the same again."""
    words = ["tenfold diagnose"]
    for name, value in options.items():
        given = [] if value is None else [str(value)] if isinstance(value, str | Path) else value
        words += [f"{name} {shell(each)}" for each in given]
    return " ".join(words)


def _check_asked(
    before: list[str] | None, after: list[str] | None, db: Path | None, around: str | None, *, find: bool
) -> None:
    """Check that the windows are named in one way."""
    if db is None and (around is not None or find):
        raise AssumptionError("--around and --find propose windows of a database: name it with --db FILE")
    if (db is None) == (before is None and after is None):
        raise AssumptionError(
            "name two windows: --before SPEC --after SPEC, or --db FILE with --around T (when it got slow) or --find"
        )
    if db is not None and (around is None) == (not find):
        raise AssumptionError("--db needs --around T (when it got slow) or --find, one of them")


def _specs(before: list[str] | None, after: list[str] | None) -> tuple[list[str], list[str]]:
    if not before or not after:
        raise AssumptionError(f"{'--after' if before else '--before'} is missing: two windows are compared")
    return before, after


def _proposal(db: Path, at: datetime | None, where: str | None) -> Proposal | None:
    from tenfold.latency import proposing

    log = logs.open_log(db)
    return proposing.find(log, where=where) if at is None else proposing.around(log, at, where=where)


def _told(proposal: Proposal) -> dict[str, Any]:
    return {
        "at": proposal.at.isoformat(),
        "before": proposal.before.text,
        "after": proposal.after.text,
        "why": list(proposal.why),
        "alternatives": [one.text for one in proposal.alternatives],
    }


def _tell_calm(db: Path, where: str | None, *, json: bool) -> None:
    """Say that ``--find`` found no change."""
    said = "no change of the tail of TTFT or TPOT by 10 % or more at the 1 % level"
    if where is not None:
        said += f" among requests where {where}"
    if json:
        print_json(
            {"verdict": "no_change", "shift": {}, "causes": [], "unexplained_ratio": None, "refused": None,
             "proposed": None, "notes": [said]}
        )  # fmt: skip
    else:
        Screen().line(f"No change: {said}. When users say otherwise: tenfold diagnose --db {shell(str(db))} --around T")


def _compare(
    specs: tuple[list[str], list[str]], where: str | None, zone: str, reading: Mapping[str, Any], *, json: bool
) -> None:
    from tenfold.cli.diagnose_screen import show_comparison
    from tenfold.latency.comparing import comparison_of
    from tenfold.latency.windows import read_pair

    pairs = read_pair(*specs, where=where, zone=zone, any_model=True, reading_options=reading)
    found = comparison_of(pairs.pairs[0], pairs.notes)
    if json:
        print_json(found.as_dict())
    else:
        show_comparison(Screen(), found)


def _show(found: Diagnoses, proposal: Proposal | None, out_file: Path | None, where: str | None, command: str) -> None:
    from tenfold.cli.diagnose_screen import show, show_mix
    from tenfold.latency.amounts import spaced

    screen = Screen()
    if proposal is not None:
        screen.line(f"Windows: {'; '.join(proposal.why)}")
        screen.command(command)
        for one in proposal.alternatives:
            screen.line(f"or against the same hours earlier: --before {shell(one.text)}")
        screen.line()
    for number, one in enumerate(found.all):
        if number:
            screen.line()
        show(screen, one, where, is_one_of_several=len(found.all) > 1)
    if len(found.mix) > 1:
        screen.line()
        show_mix(screen, found.mix)
    for note in found.notes:
        screen.line(f"Note: {spaced(note)}")
    screen.line()
    if out_file is not None:
        screen.raw(f"page: {out_file}")
    elif found.main.verdict in {"explained", "partly"}:
        screen.line("charts: the same with --out p99.html", style="dim")
