"""``tenfold demo``: the whole way on the shipped logs."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from tenfold import logs, reviewing
from tenfold.cli import cost, levers
from tenfold.cli.common import Json, Screen, print_json
from tenfold.config import Settings
from tenfold.errors import AssumptionError
from tenfold.extras import MissingExtraError
from tenfold.ledger import attribute
from tenfold.planning import plan, record
from tenfold.prices import price_book
from tenfold.reviewing import quarter_bounds
from tenfold.slo import Slo

QUARTER = "2026Q3"
# Its plan is recorded as if made on its last day, so that the review can say what came of it.
_BEFORE = "2026Q2"
_MARKER = ".tenfold-demo"


def demo(
    out_dir: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for logs, database and review.")] = Path(
        "demo-out"
    ),
    json: Json = False,
) -> None:
    """Load the shipped logs of an invented company, price them, rank the levers and write the quarter's review."""
    folder = _own_folder(out_dir) / "logs"
    _copy_logs(folder)
    db = out_dir / "usage.duckdb"
    book = price_book()
    native = sorted(str(path) for path in folder.glob("*.gz"))
    logs.load(native, db=db)
    log = logs.load([str(folder / "gateway.csv")], db=db, map=folder / "gateway.map.toml")
    since, until = quarter_bounds(_BEFORE, "UTC")
    before = attribute(log, book, since=since, until=until)
    record(plan(before, assume=folder / "assume_2026Q2.toml"), log, _BEFORE, at=until)
    since, until = quarter_bounds(QUARTER, "UTC")
    ledger = attribute(log, book, since=since, until=until)
    found = plan(ledger, assume=folder / "assume.toml", slo=Slo.load(folder / "slo.toml"))
    page = out_dir / "review.html"
    try:
        settings = Settings(budgets=str(folder / "budgets.csv"))
        reviewing.review(ledger, found, quarter=QUARTER, settings=settings).save(page)
        written, missing = str(page), ""
    except MissingExtraError as error:
        written, missing = None, str(error)
    if json:
        print_json(
            {
                "review": written,
                "review_note": missing or None,
                "db": str(db),
                "cost": cost.document(ledger, ledger.composition(["team"])),
                "levers": found.as_dict(),
            }
        )
        return
    screen = Screen()
    cost.show(screen, ledger, ledger.composition(["team"]))
    screen.line()
    levers.show(screen, found)
    screen.line()
    screen.raw(f"database  {db}")
    screen.raw(f"review    {written or 'not written: ' + missing}")


def _own_folder(out_dir: Path) -> Path:
    """Make the demo's folder anew; a folder that an earlier demo did not make is left alone."""
    marker = out_dir / _MARKER
    if out_dir.exists() and any(out_dir.iterdir()):
        if not marker.is_file():
            raise AssumptionError(f"{out_dir} holds other files; give the demo a folder of its own: --out DIR")
        shutil.rmtree(out_dir)
    out_dir.mkdir(parents=True, exist_ok=True)
    marker.write_text("Made by `tenfold demo`, which makes this folder anew each time it runs.\n", encoding="utf-8")
    return out_dir


def _copy_logs(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for item in (resources.files("tenfold._shipped") / "data" / "demo").iterdir():
        with resources.as_file(item) as file:
            shutil.copyfile(file, folder / item.name)
