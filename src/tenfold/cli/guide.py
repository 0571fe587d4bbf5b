"""What ``--help`` teaches: the way of work, commands by what they are for, and examples of each.

A command's entry is found by its words; a new command adds one line here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

WAY = """Find the next 10x in an LLM bill: exact cost from per-request logs, and the levers that shrink it.

The way of work:
load      tenfold load logs/ --db usage.duckdb
look      tenfold cost --db usage.duckdb --by team,model
decide    tenfold levers --db usage.duckdb
diagnose  tenfold diagnose --db usage.duckdb --find
report    tenfold review --db usage.duckdb --quarter 2026Q3 --out review.html

On shipped logs: tenfold demo. Each command has examples in its --help, and --json where it reads.
"""

_DB = "--db usage.duckdb"
_GPU = "--model llama3-8b --gpu h100-sxm --tp 1 --weights fp8 --kv fp8"
_LENGTHS = "--isl 2000 --osl 300"

# Command, panel, examples; in the order in which the help lists them.
_LOAD, _LOOK, _DECIDE = "Load", "Look", "Decide"
_SERVE, _DIAGNOSE, _REPORT = "Serve on GPUs of your own", "Diagnose", "Report"
_COMMANDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("demo", _LOAD, ("tenfold demo --out demo-out",)),
    (
        "load",
        _LOAD,
        (
            f"tenfold load logs/ {_DB}",
            f"tenfold load 'logs/**/*.jsonl.gz' {_DB} --set team=search",
            f"zcat spend.csv.gz | tenfold load - {_DB} --format litellm_spend",
        ),
    ),
    ("formats", _LOAD, ("tenfold formats", "tenfold formats --columns")),
    ("owners", _LOAD, (f"tenfold owners {_DB} --dry-run", f"tenfold owners {_DB}")),
    (
        "cost",
        _LOOK,
        (
            f"tenfold cost {_DB} --by team,model",
            f"tenfold cost {_DB} --by month --from 2026-07-01 --to 2026-10-01 --zone Europe/Berlin",
            f"tenfold cost {_DB} --min-coverage 0.99 --json",
        ),
    ),
    ("bridge", _LOOK, (f"tenfold bridge {_DB} --quarter 2026Q3",)),
    ("kpis", _LOOK, (f"tenfold kpis {_DB} --quarter 2026Q3",)),
    ("anomalies", _LOOK, (f"tenfold anomalies {_DB}",)),
    ("forecast", _LOOK, (f"tenfold forecast {_DB}",)),
    (
        "explain",
        _LOOK,
        (f"tenfold explain {_DB} --request req_123", f"tenfold explain {_DB} --request logs/a.jsonl:42 --line"),
    ),
    (
        "price",
        _LOOK,
        ("tenfold price --provider openai --model gpt-4.1 --at 2026-10-01 --usage '{\"input_tokens\": 1000}'",),
    ),
    ("prices", _LOOK, ("tenfold prices show gpt-4.1",)),
    ("prices check", "", ("tenfold prices check", "tenfold prices check --prices my/pricing")),
    ("prices show", "", ("tenfold prices show gpt-4.1 --provider openai",)),
    ("prices diff", "", ("tenfold prices diff shipped my/pricing",)),
    ("prices import", "", ("tenfold prices import genai-prices --provider openai",)),
    ("prices reprice", "", (f"tenfold prices reprice {_DB} --with my/pricing",)),
    ("assume", _DECIDE, ("tenfold assume > assume.toml",)),
    (
        "levers",
        _DECIDE,
        (f"tenfold levers {_DB}", f"tenfold levers {_DB} --assume assume.toml --slo slo.toml"),
    ),
    ("serving", _SERVE, ("tenfold serving size --help",)),
    (
        "serving size",
        "",
        (f"tenfold serving size {_GPU} {_LENGTHS}",),
    ),
    (
        "serving simulate",
        "",
        (f"tenfold serving simulate --trace trace.jsonl {_GPU} --budget 8192 --policy chunked",),
    ),
    ("serving fleet", "", (f"tenfold serving fleet {_DB} --fleet fleet.toml",)),
    ("serving prices", "", ("tenfold serving prices h100-sxm",)),
    (
        "serving disaggregate",
        "",
        (
            (
                f"tenfold serving disaggregate {_GPU} {_LENGTHS} --gpus 8 --link-gbps 400 --ttft-slo-ms 800 "
                "--tpot-slo-ms 40"
            ),
        ),
    ),
    ("serving breakeven", "", (f"tenfold serving breakeven {_DB} --model llama3-8b --gpu h100-sxm",)),
    ("serving choose", "", (f"tenfold serving choose {_DB}",)),
    (
        "diagnose",
        _DIAGNOSE,
        (
            f"tenfold diagnose {_DB} --find",
            "tenfold diagnose --before usage.duckdb@2026-09-01..2026-09-08 --after usage.duckdb@2026-09-08..2026-09-10",
        ),
    ),
    ("review", _REPORT, (f"tenfold review {_DB} --quarter 2026Q3 --out review.html",)),
    (
        "reconcile",
        _REPORT,
        (f"tenfold reconcile {_DB} --invoice costs.json", f"tenfold reconcile {_DB} --max-drift 0.01 --json"),
    ),
    ("forget", _LOAD, (f"tenfold forget {_DB} --user U --dry-run", f"tenfold forget {_DB} --before 2025-10-01")),
    ("publish", _REPORT, (f"tenfold publish {_DB} --out published",)),
    ("export", _REPORT, (f"tenfold export focus {_DB} --out focus.csv",)),
    ("export focus", "", (f"tenfold export focus {_DB} --out focus.csv",)),
    ("export explain", "", (f"tenfold export explain {_DB} focus.csv --row 12",)),
    ("export check", "", ("tenfold export check focus.csv",)),
    ("export csv", "", (f"tenfold export csv {_DB} --out bill.csv",)),
    ("export parquet", "", (f"tenfold export parquet {_DB} --out bill.parquet",)),
    ("export xlsx", "", (f"tenfold export xlsx {_DB} --out bill.xlsx",)),
)
EXAMPLES = {words: examples for words, _, examples in _COMMANDS}
PANELS = {words: panel for words, panel, _ in _COMMANDS if panel}
_CLOSED_PIPE, _STOPPED = 141, 130  # what a shell shows for a program that SIGPIPE or SIGINT has ended


class Guided(TyperGroup):
    """The commands in the guide's order; a stop by hand and a reader that has gone end them without a word."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 (typer keeps the parser's types to itself)
        """List the names of commands.

        Args:
            ctx: The parser's context.

        Returns:
            Those of the guide in its order, then the others.
        """
        order = list(PANELS)
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name) if name in order else len(order))

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run a command.

        Args:
            ctx: The parser's context.

        Returns:
            What the command gives.

        Raises:
            typer.Exit: The command was stopped, or its reader has gone.
        """
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # what is still held back must not be tried again when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_CLOSED_PIPE) from None
        except KeyboardInterrupt:
            raise typer.Exit(_STOPPED) from None
        return done


def teach(app: typer.Typer) -> None:
    """Give every command of the guide its panel and its examples.

    Args:
        app: The command line, all commands added.
    """
    for words, info in _all(app, ""):
        if words in PANELS:
            info.rich_help_panel = PANELS[words]
        if words in EXAMPLES:
            info.epilog = "\n".join(("For example:", *EXAMPLES[words]))


def _all(app: typer.Typer, before: str) -> Iterator[tuple[str, Any]]:
    for info in app.registered_commands:
        yield f"{before}{info.name}", info
    for group in app.registered_groups:
        yield f"{before}{group.name}", group
        if group.typer_instance is not None:
            yield from _all(group.typer_instance, f"{before}{group.name} ")
