"""``tenfold forget``: requests of a user, or before a day, leave the database for good."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenfold.cli import publish
from tenfold.cli.common import DbFile, Json, Screen, Zone, print_json, report_zone, working
from tenfold.export import forget as forget_in
from tenfold.logs import open_log


def forget(
    db: DbFile,
    user: Annotated[
        str | None, typer.Option("--user", metavar="U", help="Everything of this user (column user_id).")
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="D", help="Everything before this day or instant.")
    ] = None,
    zone: Zone = None,
    published: Annotated[
        Path | None,
        typer.Option("--published", metavar="DIR", help="Published folder: made anew, its older snapshots removed."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    json: Json = False,
) -> None:
    """Remove the requests of a user, or those before a day, with hashes, texts and excerpts; the file is written anew.

    Loads refuse what a forgotten user had asked until then, whatever file it comes from.
    """
    with working("writing the database anew", json=json):
        done = forget_in(
            open_log(db), user=user, before=before, zone=report_zone(zone), published=published, dry_run=dry_run
        )
    if json:
        print_json(done.as_dict())
        return
    screen = Screen()
    first, *rest = done.sentences()
    screen.line(first, style="bold")
    for sentence in rest:
        screen.line(sentence)
    if done.published is not None:
        publish.show(done.published, screen)
