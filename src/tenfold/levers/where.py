"""The ``where`` of an assumptions table: one boolean SQL expression over requests, checked before it is run.

The text is parsed by the engine's own parser, twice: bare after ``where``, so that a closing bracket cannot leave the
place it is later put in, and in brackets, so that nothing but an expression fits. Then the parse tree is walked, and
what is not on the lists below is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import duckdb

from tenfold.errors import AssumptionError, near
from tenfold.store import schema

COLUMNS = tuple(column.name for column in schema.REQUESTS if column.group != "internal")
_TEXT_COLUMNS = frozenset(one.name for one in schema.REQUESTS if one.type.upper() == "VARCHAR")
_BARE = "select 1 from requests where "
_BRACKETED = "select 1 from requests where (\n"
# The keys under which the parser keeps the parts of each kind of expression that a predicate may have.
_PARTS: dict[str, tuple[str, ...]] = {
    "COMPARISON": ("left", "right"),
    "CONJUNCTION": ("children",),
    "CONSTANT": (),
    "COLUMN_REF": (),
    "OPERATOR": ("children",),
    "BETWEEN": ("input", "lower", "upper"),
    "CASE": ("case_checks", "else_expr"),
    "CAST": ("child",),
    "FUNCTION": ("arguments",),
}
_OPERATORS = frozenset(
    {
        "COMPARE_IN",
        "COMPARE_NOT_IN",
        "OPERATOR_NOT",
        "OPERATOR_IS_NULL",
        "OPERATOR_IS_NOT_NULL",
        "OPERATOR_COALESCE",
        "OPERATOR_NULLIF",
        "ARRAY_EXTRACT",
    }
)
# Plain scalar functions of their arguments alone: nothing that reads files, settings, the clock or other rows.
_FUNCTIONS = frozenset({
    *("+", "-", "*", "/", "%", "||", "~~", "!~~", "~~*", "!~~*", "~~~"),
    *("like_escape", "not_like_escape", "ilike_escape", "not_ilike_escape"),
    *("abs", "ceil", "ceiling", "floor", "round", "trunc", "greatest", "least", "ifnull", "nullif", "coalesce"),
    *("lower", "upper", "trim", "ltrim", "rtrim", "length", "len", "left", "right", "substring", "substr", "replace"),
    *("concat", "split_part", "strpos", "position", "instr", "contains"),
    *("prefix", "suffix", "starts_with", "ends_with"),
    *("regexp_matches", "regexp_full_match", "regexp_extract"),
    *("date_trunc", "date_part", "year", "quarter", "month", "week", "day", "hour", "minute", "second"),
    *("dayofweek", "isodow", "dayofyear", "weekday", "dayname", "strftime", "timezone"),
    *("to_years", "to_months", "to_weeks", "to_days", "to_hours", "to_minutes", "to_seconds"),
    *("element_at", "map_extract", "map_extract_value", "map_contains", "map_keys", "cardinality"),
    *("list_contains", "array_contains", "list_value"),
})  # fmt: skip
# Those that mean the same on every engine. Spark, say, counts weekdays from another, and its concat minds NULL.
_SHARED = frozenset({
    *("+", "-", "*", "/", "%", "||", "~~", "!~~", "~~*", "!~~*"),
    *("abs", "ceil", "ceiling", "floor", "round", "greatest", "least", "ifnull", "nullif", "coalesce"),
    *("lower", "upper", "length", "replace", "split_part", "position", "instr", "contains"),
    *("date_trunc", "date_part", "year", "quarter", "month", "week", "day", "hour", "minute", "dayofyear"),
    *("to_years", "to_months", "to_weeks", "to_days", "to_hours", "to_minutes", "to_seconds"),
    *("map_keys", "cardinality"),
})  # fmt: skip
_SHARED_FIELDS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute"})
_REFUSED = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "PARAMETER": "a parameter",
    "STAR": "a star",
    "LAMBDA": "a lambda",
    "DEFAULT": "default",
    "COLLATE": "a collation",
}


@dataclass(frozen=True, slots=True)
class _Text:
    """A predicate being checked, and where it was written."""

    text: str
    place: str

    def error(self, what: str, at: int | None = None, hint: str = "") -> AssumptionError:
        """Make the error: place, what is wrong, at which character (from 1), and the near match."""
        where = "" if at is None else f" (character {min(max(at, 0), len(self.text)) + 1})"
        return AssumptionError(f"{self.place}: {what}{where}.{hint} In: {self.text}")


@lru_cache(maxsize=256)
def check(text: str, place: str) -> str:
    """Check that a text is one boolean expression over columns of ``requests``.

    Args:
        text: The predicate.
        place: Where it was written, for errors, such as ``assume.toml: [batch_api] where``.

    Returns:
        The same text, safe to be put between brackets on lines of its own.

    Raises:
        AssumptionError: It is anything else; names the position and, for an unknown column, the near match.
    """
    written = _Text(text, place)
    if not text.strip():
        raise written.error("is empty; leave the key out, or write true for all traffic")
    if "\x00" in text:
        raise written.error("holds a NUL character", text.index("\x00"))
    connection = duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})
    try:
        _no_comments(written)
        tree = _parsed(connection, written, _BARE, "")
        _parsed(connection, written, _BRACKETED, "\n)")
        if tree is None:
            raise written.error("is not one boolean expression")
        _walk(tree, written)
        _is_boolean(connection, written)
    finally:
        connection.close()
    return text


def check_shared(text: str, place: str, engine: str) -> None:
    """Check that a predicate means on another engine what it means on DuckDB.

    Args:
        text: A checked predicate.
        place: Where it was written.
        engine: Name of the engine.

    Raises:
        AssumptionError: It uses what means something else there, or nothing; names it.
    """
    written = _Text(text, place)
    connection = duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})
    try:
        tree = _parsed(connection, written, _BARE, "")
    finally:
        connection.close()
    for node in _nodes(tree):
        if what := _own_word(node):
            hint = f" Both share: {', '.join(sorted(name for name in _SHARED if name.isidentifier()))}."
            raise written.error(f"{what} may mean something else on {engine}", _position(node, written), hint)
    if '"' in "".join(text.split("'")[::2]):
        raise written.error(f"a name in double quotes is a text on {engine}", text.index('"'))


def _own_word(node: dict[str, Any]) -> str:
    """Name what of a node is DuckDB's own; empty where nothing is, or all is constant, as an interval is."""
    if all(one["class"] != "COLUMN_REF" for one in _nodes(node)):
        return ""
    name = str(node.get("function_name", "")).lower()
    if node["class"] == "FUNCTION":
        arguments = [one.get("expression", one) for one in node["arguments"]]
        field = str(arguments[0].get("literal", {}).get("text")).lower() if name == "date_part" else ""
        return "" if name in _SHARED and (not field or field in _SHARED_FIELDS) else f'function "{name}"'
    if node["class"] == "CAST":
        return "" if node["type_expr"]["type_name"].lower() in ("date", "timestamp") else "a cast"
    if node["type"] == "ARRAY_EXTRACT":
        held = node["children"][0]
        is_tags = held["class"] == "COLUMN_REF" and str(held["column_names"][-1]).lower() == "tags"
        return "" if is_tags else "a place in a list"
    return ""


def named_values(text: str) -> list[tuple[str, str]]:
    """List the values that a predicate names outright: ``column = 'v'``, ``column in ('v', ...)``, and their opposites.

    Args:
        text: A checked predicate.

    Returns:
        (Column of text, value) in the order written.
    """
    connection = duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})
    try:
        tree = _parsed(connection, _Text(text, "where"), _BARE, "")
    finally:
        connection.close()
    found: list[tuple[str, str]] = []
    for node in _nodes(tree):
        if node["type"] in ("COMPARE_EQUAL", "COMPARE_NOTEQUAL"):
            sides = [node["left"], node["right"]]
        elif node["type"] in ("COMPARE_IN", "COMPARE_NOT_IN"):
            sides = node["children"]
        else:
            continue
        columns = [str(side["column_names"][-1]).lower() for side in sides if side["class"] == "COLUMN_REF"]
        values = [str(side["literal"]["text"]) for side in sides if _is_text(side)]
        if len(columns) == 1 and columns[0] in _TEXT_COLUMNS and len(values) == len(sides) - 1:
            found += [(columns[0], value) for value in values]
    return found


def _compared(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Give what a column of text stands left of in a comparison."""
    if node["class"] == "COMPARISON":
        left, right = node["left"], [node["right"]]
    elif node["type"] in ("COMPARE_IN", "COMPARE_NOT_IN"):
        left, *right = node["children"]
    else:
        return []
    return right if _is_text_column(left) else []


def _is_text_column(node: dict[str, Any]) -> bool:
    return node["class"] == "COLUMN_REF" and str(node["column_names"][-1]).lower() in _TEXT_COLUMNS


def _is_text(node: dict[str, Any]) -> bool:
    return node["class"] == "CONSTANT" and node.get("literal", {}).get("kind") == "STRING"


def _no_comments(written: _Text) -> None:
    raw = written.text.encode()
    for offset, kind in duckdb.tokenize(written.text):
        at = len(raw[:offset].decode(errors="ignore"))
        if kind == duckdb.token_type.comment:
            raise written.error("comments are not allowed in a predicate", at)
        if raw[offset : offset + 1] == b";":
            raise written.error("a predicate is one expression: no semicolon", at)


def _parsed(connection: duckdb.DuckDBPyConnection, written: _Text, before: str, after: str) -> dict[str, Any] | None:
    sql = f"{before}{written.text}{after}"
    answer = json.loads(connection.execute("select json_serialize_sql(?)", [sql]).fetchall()[0][0])
    if answer["error"]:
        offset = int(answer.get("position") or len(sql.encode()))
        at = len(sql.encode()[:offset].decode(errors="ignore")) - len(before)
        raise written.error(f"is not one boolean expression ({answer['error_message']})", at)
    return answer["statements"][0]["node"].get("where_clause")


def _walk(tree: dict[str, Any], written: _Text) -> None:
    values: list[dict[str, Any]] = []  # what a column of text is compared with
    for node in _nodes(tree):
        kind = str(node["class"])
        at = _position(node, written)
        if kind not in _PARTS:
            raise written.error(f"{_REFUSED.get(kind, kind.lower())} is not allowed in a predicate", at)
        if kind == "OPERATOR" and node["type"] not in _OPERATORS:
            raise written.error(f"operator {node['type']} is not allowed in a predicate", at)
        values += _compared(node)
        if kind == "COLUMN_REF":
            _known_column(node["column_names"], written, at, is_value=any(node is one for one in values))
        if kind == "FUNCTION":
            _known_function(node, written, at)


def _nodes(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _nodes(one)
    elif isinstance(value, dict):
        node = cast("dict[str, Any]", value)
        if "class" in node:
            yield node
            for key in _PARTS.get(node["class"], ()):
                yield from _nodes(node[key])
        else:  # a CASE branch or a function's argument: a holder of expressions, no expression
            for one in node.values():
                yield from _nodes(one)


def _position(node: dict[str, Any], written: _Text) -> int | None:
    """Turn the parser's position, in bytes of the whole query, into characters of the text."""
    offset = int(node["query_location"]) - len(_BARE)
    raw = written.text.encode()
    return len(raw[:offset].decode(errors="ignore")) if 0 <= offset <= len(raw) else None


def _known_column(names: list[str], written: _Text, at: int | None, *, is_value: bool) -> None:
    path = names[1:] if len(names) == 2 and names[0].lower() == "requests" else names
    if len(path) != 1 or path[0].lower() not in COLUMNS:
        name = ".".join(path)
        hint = f" Text stands in single quotes: '{name}'." if is_value else near(name.lower(), COLUMNS)
        raise written.error(f'requests has no column "{name}"', at, hint)


def _known_function(node: dict[str, Any], written: _Text, at: int | None) -> None:
    name = str(node["function_name"]).lower()
    plain = not (node["schema"] or node["catalog"] or node["filter"] or node["distinct"] or node["order_bys"]["orders"])
    if name not in _FUNCTIONS or not plain:
        hint = near(name, _FUNCTIONS - {name})
        raise written.error(f'function "{name}" is not allowed in a predicate', at, hint)


def _is_boolean(connection: duckdb.DuckDBPyConnection, written: _Text) -> None:
    connection.execute(schema.ddl("requests"))
    connection.execute("insert into requests (request_id) values (null)")
    try:
        connection.execute(f"select (\n{written.text}\n) from requests").fetchall()
        found = connection.execute(f"describe select (\n{written.text}\n) as answer from requests").fetchall()[0][1]
    except duckdb.Error as error:
        raise written.error(f"cannot be used ({str(error).splitlines()[0]})") from error
    if found != "BOOLEAN":
        raise written.error(f"gives {found}, not true or false")
