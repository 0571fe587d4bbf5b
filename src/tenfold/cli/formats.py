"""``tenfold formats``: the log formats that are read, and what each can and cannot say."""

from __future__ import annotations

from typing import Annotated

import typer

from tenfold.cli.common import Json, Screen, plain_table, print_json
from tenfold.logs.catalogue import FLAGS, columns_to_fill
from tenfold.logs.catalogue import formats as all_formats

_KEYS = ("group", "name", "type", "unit", "meaning")
Columns = Annotated[
    bool, typer.Option("--columns", help="The columns of requests that a file, a map or --set may fill, instead.")
]


def formats(columns: Columns = False, json: Json = False) -> None:
    """List the log formats that are read: containers, how counts add up, what is one request; and what flags mean."""
    found = all_formats()
    if json:
        print_json({"formats": found, "flags": FLAGS, "columns": columns_to_fill()})
        return
    screen = Screen()
    if columns:
        _show_columns(screen)
        return
    for becomes in ("requests", "usage_buckets"):
        screen.line(f"into {becomes}", style="bold")
        table = plain_table(("format", False), ("comes as", False), ("carries", False), wraps=("comes as", "carries"))
        for one in (one for one in found if one["becomes"] == becomes):
            table.add_row(one["name"], ", ".join(one["containers"]), ", ".join(one["carries"]))
        screen.table(table)
        screen.line()
    for one in (one for one in found if one["becomes"] == "requests"):
        screen.line(one["name"], style="bold")
        told = [("input counts", one["convention"]), ("one request", one["one_request"]), ("merged", one["merges"])]
        screen.said([*told, *(("to be said", option) for option in one["must_be_set"])])
    screen.line("flags of requests", style="bold")
    screen.said(FLAGS.items())
    screen.line()
    screen.line("Any other CSV, JSON lines or Parquet: --map FILE. One format for all files of a load: --format NAME")
    screen.line("The columns that a map may fill: tenfold formats --columns")


def _show_columns(screen: Screen) -> None:
    table = plain_table(*((key, False) for key in _KEYS), wraps=("meaning",))
    group = ""
    for one in columns_to_fill():
        table.add_row("" if one["group"] == group else one["group"], *(one[key] for key in _KEYS[1:]))
        group = one["group"]
    screen.table(table)
