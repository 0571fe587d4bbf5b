"""``tenfold owners``: lay the owner rules of ``tenfold.toml`` over what is stored."""

from __future__ import annotations

from typing import Annotated

import typer

from tenfold import display
from tenfold.cli.common import DbFile, Json, Screen, plain_table, print_json
from tenfold.logs import open_log
from tenfold.logs.remapping import Remapped, remap

_NAMED = 12  # rules and unallocated keys on the screen; --json has all


def owners(
    db: DbFile,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    json: Json = False,
) -> None:
    """Give every stored request its owner by the rules of tenfold.toml; nothing is loaded anew.

    tenfold.toml is read from the working directory only, not from where the database is.
    """
    done = remap(open_log(db).store, dry_run=dry_run)
    if json:
        print_json(done.as_dict())
    else:
        _show(done)


def _show(done: Remapped) -> None:
    screen = Screen()
    first, *rest = done.sentences()
    screen.line(first, style="bold")
    used = sorted((rule for rule in done.rules if rule.rows), key=lambda rule: -rule.rows)
    table = plain_table(("rule", False), ("team", False), ("feature", False), ("rows", True), ("requests", True))
    for rule in used[:_NAMED]:
        team = f"{rule.team or display.NONE}{' (shared)' * rule.shared}"
        table.add_row(rule.where, team, rule.feature or display.NONE, f"{rule.rows:,}", f"{rule.requests:,}")
    if used:
        screen.table(table)
    if len(used) > _NAMED:
        screen.line(f"and {len(used) - _NAMED:,} more rules: --json has all", style="dim")
    kept = sum(rule.kept_rows for rule in used)
    if kept:
        screen.line(f"the log itself names another team in {display.counted(kept, 'row')}: it stands (override = true)")
    for sentence in rest:
        screen.line(sentence)
    lost = done.unallocated_rows()
    if lost:
        table = plain_table(("project", False), ("key", False), ("requests", True), ("share", True), ("tokens", True))
        for project, key, requests, share, tokens in lost[:_NAMED]:
            shares = (display.percent(share, 2), "" if tokens is None else display.percent(tokens, 2))
            table.add_row(project, key, f"{requests:,}", *shares)
        screen.table(table)
    if len(lost) > _NAMED:
        screen.line(f"and {len(lost) - _NAMED:,} more: --json has all", style="dim")
    if done.is_dry:
        screen.line("dry: the database is as it was", style="dim")
