"""Every error tenfold raises on purpose: one base, each with a way out in its message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TenfoldError(Exception):
    """Base of all errors raised on purpose; the message names the place and the way out."""


class PriceFileError(TenfoldError):
    """A price file says something that cannot be used; names file, entry and key."""


class UsageError(TenfoldError):
    """A usage record is impossible or ambiguous (a subset above its total, a negative count, unclear keys)."""


class LogFormatError(TenfoldError):
    """A log file's format is unknown, or a map file does not fit the file it maps."""


class StoreError(TenfoldError):
    """The database cannot be used as asked (not a tenfold store, or locked by another process)."""


class LockedError(StoreError):
    """Another process or thread has the database: the same call works when it is done."""


class StepError(TenfoldError):
    """A SQL step failed; carries the step's name and, in ``sql``, the text that ran.

    Args:
        step: Name of the step.
        sql: The SQL text that failed.
        reason: What the engine said.
    """

    def __init__(self, step: str, sql: str, reason: str) -> None:
        super().__init__(f"step {step} failed: {reason.splitlines()[0]}")
        self.step = step
        self.sql = sql


class ColumnError(TenfoldError):
    """A column was asked for that is not there, or holds nothing."""


class AssumptionError(TenfoldError):
    """An assumptions or SLO file says something that cannot be used; names table, key or position."""


class ServingError(TenfoldError):
    """A GPU, model, fleet file, trace or benchmark of self-hosted serving cannot be used; names file, entry or key."""


class NotEvaluable(TenfoldError):  # noqa: N818 -- not a failure: the data at hand cannot answer (exit code 3)
    """What was asked cannot be evaluated with the data at hand (CLI exit code 3)."""


class Unreconciled(TenfoldError):  # noqa: N818 -- a finding that a limit makes a failure
    """The log is further off what was billed than the limit that was asked for (CLI exit code 1)."""


def near(word: str, known: Iterable[str]) -> str:
    """Name the nearest known word, as the tail of an error message.

    Args:
        word: What was written.
        known: What could have been meant.

    Returns:
        ``' Did you mean "..."?'`` or an empty string where nothing is near.
    """
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f' Did you mean "{found[0]}"?' if found else ""
