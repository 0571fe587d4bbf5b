"""SQL fragments that readers are written with: times, words, JSON text, literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.store.database import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER = r"-?[0-9]+(\.[0-9]*)?([eE][+]?[0-9]+)?"
_DATED = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}.*)?"
_OFFSET = r"[T ][0-9]{2}:[0-9]{2}.*(Z|z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?)"


def text(json: str) -> str:
    """Take a JSON value (or plain text) as text: a string without its quotes.

    Args:
        json: SQL expression of type JSON or VARCHAR.

    Returns:
        SQL expression.
    """
    return f"trim(({json})::VARCHAR, '\"')"


def time(value: str, zone: str = "UTC") -> str:
    """Read a time: a number (seconds, ms or us by magnitude), ISO with an offset, or naive in a zone.

    Args:
        value: SQL text expression.
        zone: Zone that a naive time means.

    Returns:
        SQL expression of a naive UTC TIMESTAMP; NULL where it is no time.
    """
    number = f"TRY_CAST({value} AS DOUBLE)"
    scaled = f"CASE WHEN {number} >= 1e14 THEN 1 WHEN {number} >= 1e11 THEN 1e3 ELSE 1e6 END"
    naive = f"TRY_CAST({value} AS TIMESTAMP)"
    if zone != "UTC":
        naive = f"timezone('UTC', timezone({quoted(zone)}, {naive}))"
    return (
        f"CASE WHEN regexp_full_match({value}, '{_NUMBER}') "
        f"THEN make_timestamp(round({number} * {scaled})::BIGINT) "
        f"WHEN NOT regexp_full_match({value}, '{_DATED}') THEN NULL "
        f"WHEN {has_offset(value)} THEN timezone('UTC', TRY_CAST({value} AS TIMESTAMPTZ)) "
        f"ELSE {naive} END"
    )


def has_offset(value: str) -> str:
    """Tell whether a text time names its offset.

    Args:
        value: SQL text expression.

    Returns:
        SQL condition.
    """
    return f"regexp_matches({value}, '{_OFFSET}$')"


def is_naive(value: str) -> str:
    """Tell whether a text time is a date or time without an offset.

    Args:
        value: SQL text expression.

    Returns:
        SQL condition.
    """
    return f"(regexp_full_match({value}, '{_DATED}') AND NOT {has_offset(value)})"


def milliseconds(start: str, end: str) -> str:
    """Take the time between two text times, both in one zone if naive.

    Args:
        start: SQL text expression.
        end: SQL text expression.

    Returns:
        SQL expression in ms.
    """
    return f"(epoch_us({time(end)}) - epoch_us({time(start)})) / 1000.0"


def words(value: str, table: Mapping[str, str]) -> str:
    """Replace known words by tenfold's; an unknown one stays, in lower case.

    Args:
        value: SQL text expression.
        table: Word in lower case -> tenfold's word.

    Returns:
        SQL expression.
    """
    cases = " ".join(f"WHEN {quoted(word)} THEN {quoted(mine)}" for word, mine in table.items() if word != mine)
    word = f"nullif(lower(trim({value})), '')"
    return f"CASE {word} {cases} ELSE {word} END"


def first(*values: str) -> str:
    """Take the first text that is there and not empty.

    Args:
        *values: SQL text expressions.

    Returns:
        SQL expression.
    """
    return "coalesce(" + ", ".join(f"nullif(({value})::VARCHAR, '')" for value in values) + ")"


# How sources say what became of a call, and why the answer ended.
STATUS_WORDS = {
    "completed": "success",
    "complete": "success",
    "succeeded": "success",
    "ok": "success",
    "failure": "error",
    "failed": "error",
    "errored": "error",
    "in_progress": "incomplete",
    "queued": "incomplete",
    "canceled": "cancelled",
    "timed_out": "timeout",
}
FINISH_WORDS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "refusal": "content_filter",
    "safety": "content_filter",
    "prohibited_content": "content_filter",
}
