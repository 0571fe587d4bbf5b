"""The SQL steps: one file each under ``sql/``, in the dialect subset that DuckDB and Spark share, run unchanged."""

from __future__ import annotations

from functools import cache
from importlib import resources

from tenfold.store.engines import Engine


@cache
def text(step: str) -> str:
    """Read a step's SQL.

    Args:
        step: File name without ``.sql``.

    Returns:
        The text, with its header comment.
    """
    return (resources.files("tenfold.store") / "sql" / f"{step}.sql").read_text(encoding="utf-8")


def run(engine: Engine, step: str, *, name: str | None = None, materialised: bool = False, **words: str) -> None:
    """Run a step: its result becomes a view.

    Args:
        engine: Where to run it.
        step: File name without ``.sql``.
        name: View name; the step's own by default.
        materialised: Compute it now and keep the result.
        words: What to put for the ``{placeholders}`` of the file: names of views and of columns that the caller has
            checked against the schema, never values.
    """
    engine.step(name or step, filled(step, **words), materialised=materialised)


def filled(step: str, **words: str) -> str:
    """Fill a step's placeholders.

    Args:
        step: File name without ``.sql``.
        words: View and column names.

    Returns:
        The SQL that runs.
    """
    return text(step).format(**words)
