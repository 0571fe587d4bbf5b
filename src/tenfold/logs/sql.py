"""SQL fragments that readers are written with: times, words, JSON text, literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.store.database import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER = r"-?[0-9]+(\.[0-9]*)?([eE][+]?[0-9]+)?"
# Times outside these years are mistakes (a unit taken for another, a date's digits taken for seconds, a placeholder).
_FIRST_S, _END_S = 1_420_070_400, 4_102_444_800  # 2015-01-01, 2100-01-01
_DATE = r"20(1[5-9]|[2-9][0-9])-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"
_NAIVE = rf"{_DATE}({_CLOCK})? *"
_UTC = rf"{_DATE}{_CLOCK} ?(Z|z|UTC|GMT)(\[[A-Za-z/]+\])? *"
_OFFSET = r" ?([+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)(\[[A-Za-z0-9_/+-]+\])? *"
_ZONED = r" ?\[?([A-Za-z_]+(/[A-Za-z0-9_+-]+)+)\]? *"
_HMS = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
# What mail and HTTP headers write (RFC 9110, 5.6.7; RFC 5322, 3.3), and the common log format of web servers.
_HEADER = rf"[A-Za-z]{{3}}, [0-9]{{1,2}} [A-Za-z]{{3}} 20[0-9]{{2}} {_HMS} (GMT|UTC|Z|[+-][0-9]{{4}})"
_SERVER = rf"\[?[0-9]{{1,2}}/[A-Za-z]{{3}}/20[0-9]{{2}}:{_HMS} [+-][0-9]{{4}}\]?"
# Counts that may be read: plain digits are the rule, the rest is a number written otherwise. A fraction of three zeros
# is a thousand wherever the point separates thousands: 1.000 is no count.
_WRITTEN = r'"?([0-9]{1,3}(,[0-9]{3})+|[0-9]+)(\.0{0,2}|\.0{4,}|(\.[0-9]*)?[eE][+]?[0-9]+)?"?'


def text(json: str) -> str:
    """Take a JSON value (or plain text) as text: a string without its quotes.

    Args:
        json: SQL expression of type JSON or VARCHAR.

    Returns:
        SQL expression.
    """
    return f"trim(({json})::VARCHAR, '\"')"


def braced(fragment: str) -> str:
    """Double the braces of a fragment that goes through ``str.format``.

    Args:
        fragment: SQL.

    Returns:
        The fragment, as such a template writes it.
    """
    return fragment.replace("{", "{{").replace("}", "}}")


def plain(digits: int) -> str:
    """Write the pattern of a count in plain digits.

    Args:
        digits: Most digits it may have.

    Returns:
        A regular expression.
    """
    return f"[0-9]{{1,{digits}}}"


def count(raw: str, digits: int = 9) -> str:
    """Read a count from text: whole, at least 0, of so many digits; anything else is NULL.

    Args:
        raw: SQL text expression.
        digits: Most digits it may have.

    Returns:
        SQL expression of type BIGINT.
    """
    return f"CASE WHEN regexp_full_match({raw}, '{plain(digits)}') THEN {raw}::BIGINT {_otherwise(raw, digits)} END"


def _otherwise(raw: str, digits: int) -> str:
    number = f"TRY_CAST(replace(trim({raw}, '\"'), ',', '') AS DOUBLE)"
    whole = f"{number} = floor({number}) AND {number} < 1e{digits}"
    return f"WHEN regexp_full_match({raw}, '{_WRITTEN}') AND {whole} THEN {number}::BIGINT"


def is_odd(raw: str, digits: int = 9) -> str:
    """Tell a text that is not just the digits of a count.

    Args:
        raw: SQL text expression.
        digits: Most digits it may have.

    Returns:
        SQL condition; false for NULL.
    """
    return f"coalesce(NOT regexp_full_match({raw}, '{plain(digits)}'), false)"


def count_unless_odd(raw: str, odd: str, digits: int = 9) -> str:
    """Read a count like ``count``, where one look at the text was taken before.

    Args:
        raw: SQL text expression.
        odd: SQL condition as ``is_odd`` gives it.
        digits: Most digits it may have.

    Returns:
        SQL expression of type BIGINT.
    """
    return f"CASE WHEN {odd} THEN CASE {_otherwise(raw, digits)} END ELSE TRY_CAST({raw} AS BIGINT) END"


def sum_of(entries: str, leaf: str, *, none: str = "'0'") -> str:
    """Sum one member of a list of structs, as text: no count where one of them is none.

    Args:
        entries: SQL of the list.
        leaf: Member that holds the counts.
        none: SQL of the result where no entry has one.

    Returns:
        SQL text expression.
    """
    counts = f'list_transform({entries}, lambda x: x."{leaf}"::VARCHAR)'
    given = f"list_filter({counts}, lambda c: c IS NOT NULL)"
    read = f"list_transform({given}, lambda c: {count('c')})"
    broken = f"len(list_filter({read}, lambda n: n IS NULL)) > 0"
    # A sum of counts that were written otherwise stays one itself, so that it is flagged.
    otherwise = f"len(list_filter({given}, lambda c: NOT regexp_full_match(c, '{plain(9)}'))) > 0"
    total = f"list_sum({read})::VARCHAR || CASE WHEN {otherwise} THEN '.0' ELSE '' END"
    return f"CASE WHEN {broken} THEN 'no count' ELSE coalesce({total}, {none}) END"


def time(value: str, zone: str = "UTC") -> str:
    """Read a time: a number (seconds, ms, us or ns by magnitude), ISO with an offset or zone, or naive in a zone.

    Args:
        value: SQL text expression.
        zone: Zone that a naive time means.

    Returns:
        SQL expression of a naive UTC TIMESTAMP; NULL where it is no time from 2015 to 2099.
    """
    whole, number = f"TRY_CAST({value} AS BIGINT)", f"TRY_CAST({value} AS DOUBLE)"
    utc = f"CASE WHEN {value} >= '2015' AND {value} < '2100' THEN TRY_CAST(left({value}, -1) AS TIMESTAMP) END"
    scales = {1: "1e6", 10**3: "1e3", 10**6: "1", 10**9: "1e-3"}
    tests = (
        f"WHEN {number} >= {unit * _FIRST_S} AND {number} < {unit * _END_S} THEN {scale}"
        for unit, scale in scales.items()
    )
    scaled = f"CASE {' '.join(tests)} END"
    header = f"regexp_replace(substr({value}, 6), '(GMT|UTC|Z)$', '+0000')"
    server = f"trim({value}, '[]')"
    naive = f"TRY_CAST({value} AS TIMESTAMP)"
    if zone != "UTC":
        naive = f"timezone('UTC', timezone({quoted(zone)}, {naive}))"
    return (
        # What most logs write needs no pattern: seconds, and ISO with a Z.
        f"CASE WHEN strlen({value}) = 10 AND {whole}::VARCHAR = {value} "
        f"AND {whole} >= {_FIRST_S} AND {whole} < {_END_S} THEN make_timestamp({whole} * 1000000) "
        f"WHEN suffix({value}, 'Z') AND strlen({value}) IN (20, 24, 27, 30) AND {utc} IS NOT NULL THEN {utc} "
        f"WHEN regexp_full_match({value}, '{_NUMBER}') "
        f"THEN TRY(make_timestamp(TRY_CAST(round({number} * {scaled}) AS BIGINT))) "
        f"WHEN regexp_full_match({value}, '{_NAIVE}') THEN {naive} "
        f"WHEN regexp_full_match({value}, '{_UTC}') "
        f"THEN TRY_CAST(regexp_extract({value}, '^{_DATE}{_CLOCK}') AS TIMESTAMP) "
        f"WHEN regexp_full_match({value}, '{_DATE}{_CLOCK}{_OFFSET}') THEN {_instant(value, _OFFSET, '')} "
        f"WHEN regexp_full_match({value}, '{_DATE}{_CLOCK}{_ZONED}') THEN {_instant(value, _ZONED, ' ')} "
        f"WHEN regexp_full_match({value}, '{_HEADER}') THEN {_parsed(header, '%-d %b %Y ')} "
        f"WHEN regexp_full_match({value}, '{_SERVER}') THEN {_parsed(server, '%-d/%b/%Y:')} END"
    )


def offset(value: str, unit: str) -> str:
    """Read an offset from an unknown start as a time of 1970.

    Args:
        value: SQL text expression.
        unit: ``s`` or ``ms``.

    Returns:
        SQL expression of a naive TIMESTAMP; NULL where it is no number of at most ten years.
    """
    number, scale = f"TRY_CAST({value} AS DOUBLE)", {"s": "1e6", "ms": "1e3"}[unit]
    return (
        f"CASE WHEN regexp_full_match({value}, '{_NUMBER}') AND {number} * {scale} BETWEEN 0 AND 3.2e14 "
        f"THEN make_timestamp(round({number} * {scale})::BIGINT) END"
    )


def _instant(value: str, place: str, between: str) -> str:
    # The engine reads an offset that follows at once and a zone after one space; anything else it ignores.
    written = f"regexp_replace({value}, '{place}$', '{between}\\1')"
    return f"timezone('UTC', TRY_CAST({written} AS TIMESTAMPTZ))"


def _parsed(value: str, date: str) -> str:
    read = f"timezone('UTC', try_strptime({value}, '{date}%H:%M:%S %z'))"
    return f"CASE WHEN epoch({read}) >= {_FIRST_S} AND epoch({read}) < {_END_S} THEN {read} END"


def is_naive(value: str) -> str:
    """Tell whether a text time is a date or time without an offset.

    Args:
        value: SQL text expression.

    Returns:
        SQL condition.
    """
    return f"regexp_full_match({value}, '{_NAIVE}')"


# What programs write where there is no id.
_NO_ID = ("", "none", "null", "nil", "nan", "undefined")
_LONG = 20  # bytes beyond which no text is one of them


def named(value: str) -> str:
    """Take an id, unless it is a word for none.

    Args:
        value: SQL text expression.

    Returns:
        SQL expression.
    """
    words = ", ".join(quoted(word) for word in _NO_ID)
    written = f"({value})::VARCHAR"
    return f"CASE WHEN strlen({written}) > {_LONG} OR lower(trim({written})) NOT IN ({words}) THEN {written} END"


def key_part(value: str) -> str:
    """Write one part of a dedup key, so that no two lists of parts give the same key.

    Args:
        value: SQL text expression.

    Returns:
        SQL expression, with the signs that part keys escaped.
    """
    plain = escaped = f"({value})::VARCHAR"
    for sign in _PARTING:
        escaped = f"replace({escaped}, '{sign}', '\\{sign}')"
    parts = " OR ".join(f"contains({plain}, '{sign}')" for sign in _PARTING)
    return f"CASE WHEN {parts} THEN {escaped} ELSE {plain} END"


_PARTING = ("\\", "|", "#")
_TRUE = ("true", "t", "1", "1.0", "yes", "y", "hit")
_FALSE = ("false", "f", "0", "0.0", "no", "n", "miss")


def truth(value: str) -> str:
    """Read a truth value in its usual spellings; an unknown word stays, for the check to find.

    Args:
        value: SQL text expression.

    Returns:
        SQL text expression; NULL where nothing is said.
    """
    word = f"lower(trim({value}))"
    true, false = (", ".join(quoted(name) for name in names) for names in (_TRUE, _FALSE))
    unsaid = ", ".join(quoted(name) for name in _NO_ID)
    return (
        f"CASE WHEN {word} IN ({true}) THEN 'true' WHEN {word} IN ({false}) THEN 'false' "
        f"WHEN {word} NOT IN ({unsaid}) THEN {value} END"
    )


def milliseconds(start: str, end: str) -> str:
    """Take the time between two text times, both in one zone if naive.

    Args:
        start: SQL text expression.
        end: SQL text expression.

    Returns:
        SQL expression in ms.
    """
    return f"TRY(epoch_us({time(end)}) - epoch_us({time(start)})) / 1000.0"


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
    # a column that says whether the call succeeded
    "true": "success",
    "false": "error",
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
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "spii": "content_filter",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}


def escaped(fragment: str) -> str:
    """Double the braces of a fragment that goes into a reader's ``reshape``, whose own placeholders stay single.

    Args:
        fragment: SQL.

    Returns:
        The fragment as text of a format string.
    """
    return fragment.replace("{", "{{").replace("}", "}}")
