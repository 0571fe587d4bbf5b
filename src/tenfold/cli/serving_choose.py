"""``tenfold serving choose``: which engine suits the traffic of a log, what is missing to say, and how to find out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from tenfold.cli.common import Db, From, Json, Screen, To, Zone, instant, plain_table, print_json, report_zone, shell
from tenfold.cli.serving_common import finite
from tenfold.display import counted, number, percent, sentence
from tenfold.errors import AssumptionError, near
from tenfold.ledger import attribute
from tenfold.levers.where import check
from tenfold.logs import open_log
from tenfold.serving.framework_facts import HARDWARE, frameworks, kind_of
from tenfold.serving.frameworks import ORDER_OF_WORK, Choice, Custom, Facts, Ranked, choose
from tenfold.serving.traffic import Trace, Traffic, measure, write_trace

Because = Literal["hardware", "scale"]
Where = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help="Only these requests, such as \"feature = 'chat'\".")
]
Hardware = Annotated[
    str | None, typer.Option("--hardware", metavar="H", help=f"A GPU, such as h100-sxm, or {', '.join(HARDWARE)}.")
]
Gpus = Annotated[int | None, typer.Option("--gpus", metavar="N", min=1, help="GPUs there are.")]
NewModels = Annotated[
    bool | None,
    typer.Option("--new-models/--no-new-models", help="Models are needed within days of release.", show_default=False),
]
Adapters = Annotated[
    bool | None,
    typer.Option("--adapters/--no-adapters", help="Many LoRA adapters share one model.", show_default=False),
]
Pinned = Annotated[
    bool | None,
    typer.Option("--pinned/--no-pinned", help="One model stays; the team pins versions.", show_default=False),
]
Running = Annotated[str | None, typer.Option("--running", metavar="E", help="Engine that runs today, such as tgi.")]
CustomBecause = Annotated[
    str | None,
    typer.Option("--custom-because", metavar="R", help="Why an engine of your own: hardware, or scale."),
]
ServingUsd = Annotated[
    float | None,
    typer.Option("--serving-usd-per-year", metavar="X", callback=finite, min=0, help="With scale: what serving costs."),
]
TeamUsd = Annotated[
    float,
    typer.Option("--team-usd-per-year", metavar="X", callback=finite, min=0, help="With scale: what a team costs."),
]
ModelName = Annotated[
    str | None, typer.Option("--model", metavar="M", help="Model to put into the commands; default the log's own.")
]
WriteTrace = Annotated[
    Path | None,
    typer.Option("--write-trace", metavar="FILE", help="Write these requests as a trace to replay: lengths, no text."),
]

_TRACE = "trace.jsonl"


def choose_command(
    db: Db, hardware: Hardware = None, gpus: Gpus = None, new_models: NewModels = None, adapters: Adapters = None,
    pinned: Pinned = None, running: Running = None, custom_because: CustomBecause = None,
    serving_usd_per_year: ServingUsd = None, team_usd_per_year: TeamUsd = 1_000_000, where: Where = None,
    since: From = None, until: To = None, zone: Zone = None, model: ModelName = None,
    write_to: WriteTrace = None, json: Json = False,
) -> None:  # fmt: skip
    """Rank serving engines by features of a log and stated facts; name what is missing and what to measure."""
    facts = Facts(
        hardware=None if hardware is None else kind_of(hardware),
        gpus=gpus,
        new_models=new_models,
        adapters=adapters,
        pinned=pinned,
        running=_engine(running),
        custom=_custom(custom_because, serving_usd_per_year, team_usd_per_year),
    )
    condition = "true" if where is None else check(where, "--where")
    named = report_zone(zone)
    ledger = attribute(
        open_log(db), since=instant(since, named, "--from"), until=instant(until, named, "--to"), zone=named
    )
    traffic = measure(ledger, condition)
    made = choose(traffic, facts)
    trace = None if write_to is None else write_trace(ledger, write_to, condition)
    if model is None and traffic.models > 1:
        which = f"the commands name {traffic.model}, which most requests ask for: --model chooses another"
        made = made._replace(notes=(*made.notes, f"{counted(traffic.models, 'model')} in the log; {which}"))
    asked = {"--db": str(db), "--where": where, "--from": since, "--to": until, "--zone": zone}
    stated = [f"{name} {shell(value)}" for name, value in asked.items() if value]
    writing = " ".join(["tenfold serving choose", *stated])
    commands = _commands(made, shell(model or traffic.model or "MODEL"), write_to, trace, writing)
    if json:
        print_json(_as_dict(made, traffic, facts, commands, trace))
    else:
        _show(made, traffic, commands, trace)


def _engine(name: str | None) -> str | None:
    if name is None:
        return None
    known = [one.name for one in frameworks().all.values() if one.role == "engine"]
    if name.lower() not in known:
        raise AssumptionError(f'--running "{name}": one of {", ".join(known)}.{near(name.lower(), known)}')
    return name.lower()


def _custom(because: str | None, serving: float | None, team: float) -> Custom | None:
    for known in get_args(Because):
        if because == known:
            return Custom(known, serving, team)
    if because is not None:
        raise AssumptionError(
            f'--custom-because "{because}": the field accepts two reasons: hardware (that no engine supports), scale '
            "(where one per cent pays a team)"
        )
    return None


def _commands(made: Choice, model: str, path: Path | None, trace: Trace | None, writing: str) -> list[str]:
    """Write what to run: each engine in turn, under the same replay; first what writes the trace."""
    file = shell(str(path)) if path is not None else _TRACE
    block = f" --prompt-input-tokens-block-size {trace.block_tokens}" if trace and trace.block_tokens else ""
    replay = (
        f"aiperf profile --model {model} --endpoint-type chat --streaming --url localhost:8000 --input-file {file} "
        f"--custom-dataset-type mooncake_trace --fixed-schedule{block}"
    )
    made_by = [] if path is not None else [f"{writing} --write-trace {_TRACE}"]
    runs = [line for one in made.candidates for line in (one.serve.format(model=model), replay)]
    return [*made_by, *runs]


def _as_dict(made: Choice, traffic: Traffic, facts: Facts, commands: list[str], trace: Trace | None) -> dict[str, Any]:
    return {
        "ranking": [_ranked(one) for one in made.ranking],
        "missing": [one._asdict() for one in made.missing],
        "measured": {**traffic._asdict(), "shared_ratio": traffic.shared_ratio},
        "stated": {
            **facts._asdict(), "custom": None if facts.custom is None else facts.custom._asdict()
        },
        "orchestration": [_ranked(one) for one in made.orchestration],
        "benchmark": {
            "engines": [one.name for one in made.candidates],
            "commands": commands,
            "trace": None if trace is None else trace._asdict(),
        },
        "benchmarks_of_others": [one.model_dump(mode="json") for one in made.benchmarks],
        "order_of_work": list(ORDER_OF_WORK),
        "notes": list(made.notes),
    }  # fmt: skip


def _ranked(one: Ranked) -> dict[str, Any]:
    framework = one.framework
    return {
        "name": framework.name,
        "label": framework.label,
        "score": one.score,
        "eligible": one.eligible,
        "for": list(one.pro),
        "against": list(one.con),
        "status": framework.status,
        "status_since": None if framework.status_since is None else framework.status_since.isoformat(),
        "version": framework.version or None,
        "released": framework.released or None,
        "standing": framework.standing,
        "source": framework.source,
        "checked": framework.checked.isoformat(),
    }


def _show(made: Choice, traffic: Traffic, commands: list[str], trace: Trace | None) -> None:
    screen = Screen()
    names = [one.label for one in made.candidates]
    screen.line(_headline(names), style="bold")
    screen.said(_said_traffic(traffic))
    screen.line()
    table = plain_table(("engine", False), ("points", True), ("status", False))
    for one in made.ranking:
        points = f"{one.score}" if one.eligible else "no"
        version = " ".join(part for part in (one.framework.version, one.framework.released) if part)
        status = f"{one.framework.status}{f', {version}' if version else ''}"
        table.add_row(one.framework.label, points, "" if status == "none" else status)
    screen.table(table)
    screen.line()
    screen.said(
        [
            *((f"{step}.", sentence(text)) for step, text in enumerate(ORDER_OF_WORK, 1)),
            *(("missing", f"{one.fact}: {one.how}") for one in made.missing),
            *(("note", note) for note in made.notes),
        ]
    )
    _show_commands(screen, names, commands, trace)
    for one in (*made.ranking, *(above for above in made.orchestration if above.eligible)):
        screen.line()
        screen.line(one.framework.label, style="bold")
        screen.said(
            [
                *(("for", sentence(reason)) for reason in one.pro if one.eligible),
                *(("against", sentence(reason)) for reason in one.con),
                *_status_row(one),
            ]
        )
    screen.line()
    screen.line("What others measured: shown, not counted", style="bold")
    screen.said((one.who, f"{one.what} ({one.date}: {one.source})") for one in made.benchmarks)


def _show_commands(screen: Screen, names: list[str], commands: list[str], trace: Trace | None) -> None:
    screen.line()
    if trace is not None:
        left = f"; {number(trace.left_out, 0)} without a time or a count are left out" if trace.left_out else ""
        screen.line(f"Trace of {number(trace.requests, 0)} requests over {number(trace.seconds, 0)} s written{left}")
    if names:
        screen.line(f"Benchmark {' and '.join(names)} with your trace:")
        for command in commands:
            screen.command(command)


def _headline(names: list[str]) -> str:
    if not names:
        return "No engine can be recommended on this hardware"
    second = f", then {names[1]}: measure both before you decide" if len(names) > 1 else ""
    return f"By features: {names[0]}{second}"


def _status_row(one: Ranked) -> list[tuple[str, str]]:
    framework = one.framework
    if framework.role == "custom":
        return []
    return [("status", f"{framework.standing} (checked {framework.checked}: {framework.source})")]


def _said_traffic(traffic: Traffic) -> list[tuple[str, str]]:
    means = ((traffic.mean_input, "a prompt"), (traffic.mean_output, "an answer"))
    parts = [f"{counted(traffic.requests, 'request')} of {counted(traffic.models, 'model')}"]
    parts += [f"{number(mean, 0)} tokens in {noun}" for mean, noun in means if mean is not None]
    if traffic.in_flight is not None:
        parts.append(f"{number(traffic.in_flight, 1)} in flight on average, {traffic.peak} at the peak")
    shares = (
        (traffic.cached_ratio, "of prompt tokens cached"),
        (traffic.repeated_ratio, "of prompt blocks sent before"),
        (traffic.multi_turn_ratio, "of requests in sessions of several"),
        (traffic.structured_ratio, "of answers structured"),
        (traffic.ttft_ratio, "of the time before the first token"),
    )
    parts += [f"{percent(share)} {words}" for share, words in shares if share is not None]
    return [("measured", "; ".join(parts))]
