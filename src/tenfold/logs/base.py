"""What a reader is: data that says how one log format becomes rows of `requests`.

A reader is written as raw paths with their types, SQL expressions over them and a usage shape. The load derives the
strict typed read, the line-by-line pass for broken files and the one projection from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from tenfold.logs import sql
from tenfold.store.database import quoted
from tenfold.usage.shape import LISTED, steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.usage.shape import UsageShape

Kind = Literal["ndjson", "csv", "parquet"]
# A tree of raw values: a type name, an object, or a list of objects.
Tree = dict[str, "str | Tree | list[Tree]"]

# Leaf of what is read from JSON text: it, or an object in it, was no object.
UNREAD = "_tenfold_unread"
# Column of a reshaped row: "ignored" or "merged" where it carries no request of its own.
BESIDE = "_tenfold_beside"
# Column of what is derived from a row's text, and one for text that a reshape gathers from several records.
TEXT = "_tenfold_text"
PARTS = "_tenfold_parts"


class Other(NamedTuple):
    """Another format's records, by the values of one key.

    Args:
        name: The format in words, with the way out.
        key: Dotted key.
        values: Its values there.
    """

    name: str
    key: str
    values: tuple[str, ...]


class Detect(NamedTuple):
    """What makes a file, and each record in it, one of this format.

    Args:
        keys: Sets of dotted keys; a record that has all keys of one set fits.
        values: Dotted key -> values; a record with one of them fits too.
        absent: Keys that must not be there.
        others: Other formats whose records never fit, though they bear such keys.
        records: Further sets that make a line of such a file a usage record (a failed call, a stream without usage),
            though no file is known by them.
    """

    keys: tuple[tuple[str, ...], ...] = ()
    values: Mapping[str, tuple[str, ...]] = {}
    absent: tuple[str, ...] = ()
    others: tuple[Other, ...] = ()
    records: tuple[tuple[str, ...], ...] = ()

    def is_record_sql(self, *, table: bool) -> str:
        """Write the condition that a raw row is a usage record of this format.

        Args:
            table: The rows have a header, which tells the format: any identifying cell that is filled will do.

        Returns:
            SQL condition over the raw row ``r``; never NULL.
        """
        sets = (*self.keys, *self.records)
        if table:
            sets = tuple(dict.fromkeys((key,) for keys in sets for key in keys))
        tests = [" AND ".join(f"{member('r', key)} IS NOT NULL" for key in keys) for keys in sets]
        tests += [_one_of(key, values) for key, values in self.values.items()]
        others = [_one_of(other.key, other.values) for other in self.others]
        either = " OR ".join(f"coalesce({test}, false)" for test in tests) or "true"
        return f"({either}) AND NOT coalesce({' OR '.join(others) or 'false'}, false)"

    def record_looked_for(self) -> str:
        """Say what makes a line a record, for a reject.

        Returns:
            Such as ``usage.prompt_tokens, or error and status_code``.
        """
        return ", or ".join(dict.fromkeys((*self._worded(), *(" and ".join(keys) for keys in self.records))))

    def looked_for(self) -> str:
        """Say it in words, for a refusal.

        Returns:
            Such as ``object = "chat.completion", or usage.prompt_tokens``.
        """
        return ", or ".join(self._worded())

    def _worded(self) -> list[str]:
        named = [f'{key} = "{"/".join(values)}"' for key, values in self.values.items()]
        return [*named, *(" and ".join(keys) for keys in self.keys)]


def _one_of(key: str, values: tuple[str, ...]) -> str:
    return f"{member('r', key)}::VARCHAR IN ({', '.join(quoted(value) for value in values)})"


class Children(NamedTuple):
    """Further rows that one record holds.

    Args:
        each: SQL list over the raw row ``r``; every entry becomes ``r.it``, its number ``r.it_number``.
        suffix: SQL text that tells the child from its parent, appended to its dedup key.
        fields: Columns that differ from the parent's.
        usage: SQL of the child's own usage object.
    """

    each: str
    suffix: str
    fields: Mapping[str, str]
    usage: str


class Text(NamedTuple):
    """Where a format holds the text of calls; read only to be counted and hashed, or kept where that is asked for.

    Args:
        leaves: Raw paths that hold text, as in ``Reader.leaves``.
        prompt: SQL over ``r`` of the request: a provider's request body, a list of messages, or plain text.
        params: SQL over ``r`` of what else the answer depends on: a request body, or the parameters alone.
        response: SQL over ``r`` of the answer: a body, content blocks, a stream's chunks in order, or plain text.
        reshape: SQL around ``{reshaped}``, the reader's own reshape, that brings the text along where that leaves it.
        reads_beside: The format's lines without a request hold text of the others: they are reshaped, too.
    """

    leaves: Mapping[str, str]
    prompt: str = "NULL"
    params: str = "NULL"
    response: str = "NULL"
    reshape: str = ""
    reads_beside: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """One log format.

    Args:
        name: As in ``--format``.
        kinds: Container formats that it comes in.
        shape: Convention of its token counts.
        usage: SQL of the usage object, in which the shape's paths lie.
        leaves: Dotted raw path -> type: VARCHAR for text, JSON for counts and times (so that text, fractions and
            truth values are seen); ``list[].leaf`` for lists of objects.
        fields: Requests column -> SQL text over the raw row ``r``.
        ts: SQL text of the start time.
        dedup_key: SQL text of what makes a row one request; NULL where the source has no id.
        detect: What makes a record one of this format.
        counts: Token column -> SQL, where it is not the shape's own path.
        total: SQL of the reported total, where it is not the shape's own path.
        flags: Flag -> SQL condition.
        children: Further rows in one record.
        zone: Zone that naive times of this source are known to mean.
        relative: Unit of times that are offsets from an unknown start: they are set on 1970-01-01 and flagged.
        unpacked: Raw columns that may hold JSON as text (in CSV), opened before the projection.
        beside: SQL conditions over the raw row ``r`` of lines that belong to the format and carry no request (a
            session's other events): counted as ``ignored``, kept aside from rejects.
        reshape: SQL that turns a file's records into rows of requests where they are not one to one: a SELECT from
            ``{one}``, whose columns are the leaves and ``{line}``, to columns that ``fields`` then reads (``{line}``
            among them). It may unnest (spans of an export), fold (events of a stream) or take differences (counters).
            A column ``BESIDE`` says of a row that it is ``ignored`` or ``merged``; NULL is a request.
        reshape_if: SQL condition over ``r``: only a file with such a line is reshaped; empty: every file.
        context: SQL condition over ``r`` of lines without a request of their own that ``reshape`` reads all the same
            (a thread's head): counted as ``ignored``.
        text: Where the text of calls is; None where the format has none.
        one_request: What makes a line one request, in words (`tenfold formats`); empty where nothing does.
        merges: How several lines of one request become one, in words.
        unsaid: What no line says and the user may have to: options of `tenfold load`.
        convention: How counts add up, in words, where the shape alone does not say.
    """

    name: str
    kinds: tuple[Kind, ...]
    shape: UsageShape
    usage: str
    leaves: Mapping[str, str]
    fields: Mapping[str, str]
    ts: str
    dedup_key: str
    detect: Detect
    counts: Mapping[str, str] = field(default_factory=dict[str, str])
    total: str | None = None
    flags: Mapping[str, str] = field(default_factory=dict[str, str])
    children: tuple[Children, ...] = ()
    zone: str | None = None
    relative: Literal["s", "ms"] | None = None
    unpacked: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    reshape: str = ""
    reshape_if: str = ""
    context: str = "false"
    text: Text | None = None
    one_request: str = ""
    merges: str = ""
    unsaid: tuple[str, ...] = ()
    convention: str = ""


def usage_leaves(shape: UsageShape, prefix: str) -> dict[str, str]:
    """List the raw paths of a usage shape under a prefix.

    Args:
        shape: The shape.
        prefix: Such as ``"usage."``.

    Returns:
        Dotted path -> type.
    """
    found: dict[str, str] = {}
    paths = [path for paths in shape.counts.values() for path in paths]
    for path in (*paths, *shape.total, *shape.input_beside, *shape.output_beside):
        listed = LISTED.fullmatch(path)
        if listed is not None:
            found[f"{prefix}{listed['list']}[].{listed['key']}"] = "VARCHAR"
            for leaf in _spellings(listed["leaf"]):
                found[f"{prefix}{listed['list']}[].{leaf}"] = "JSON"
        elif not any(path.startswith(f"{name}.") for name in shape.open_objects):
            found[prefix + path] = "JSON"
    for path in shape.open_objects:
        found[prefix + path] = "MAP(VARCHAR, JSON)"
    for path in (*shape.tier, *shape.region):
        found[prefix + path] = "VARCHAR"
    return found


def usage_sql(shape: UsageShape, root: str, paths: tuple[str, ...]) -> str:
    """Write the first known one of a shape's paths as SQL text.

    Args:
        shape: The shape.
        root: SQL of the usage object.
        paths: Paths in it.

    Returns:
        SQL text expression of the raw value.
    """
    if not paths:
        return "NULL"
    return f"coalesce({', '.join(_path_sql(shape, root, path) for path in paths)})"


def _path_sql(shape: UsageShape, root: str, path: str) -> str:
    listed = LISTED.fullmatch(path)
    if listed is not None:
        entries = f'{root}."{listed["list"]}"'
        kept = f'list_filter({entries}, lambda x: lower(x."{listed["key"]}") = {quoted(listed["value"].lower())})'
        spelt = ", ".join(f'x."{leaf}"' for leaf in _spellings(listed["leaf"]))
        counts = f"list_transform({kept}, lambda x: struct_pack(n := coalesce({spelt})))"
        return f"CASE WHEN {entries} IS NOT NULL THEN {sql.sum_of(counts, 'n')} END"
    for name in shape.open_objects:
        if path.startswith(f"{name}."):
            return f"{member(root, name)}['{path[len(name) + 1 :]}']::VARCHAR"
    return f"{member(root, path)}::VARCHAR"


def _spellings(name: str) -> tuple[str, ...]:
    """Give a key in camelCase and in snake_case, as SDKs write it."""
    snake = re.sub("([A-Z])", lambda found: "_" + found[0].lower(), name)
    return tuple(dict.fromkeys((name, snake)))


def member(root: str, path: str) -> str:
    """Write a dotted path as SQL struct access.

    Args:
        root: SQL of the object.
        path: Dotted path in it.

    Returns:
        SQL expression.
    """
    return root + "".join(f".{identifier(step)}" for step in steps(path))


def identifier(name: str) -> str:
    """Quote a name for SQL.

    Args:
        name: Any name.

    Returns:
        The quoted identifier.
    """
    return '"' + name.replace('"', '""') + '"'


def tree(leaves: Mapping[str, str]) -> Tree:
    """Turn dotted paths into nested objects.

    Args:
        leaves: Dotted path -> type; a step that ends in ``[]`` is a list of objects.

    Returns:
        The tree.
    """
    root: Tree = {}
    for path, kind in leaves.items():
        node = root
        *above, leaf = steps(path)
        for step in above:
            name = step.removesuffix("[]")
            held = node.setdefault(name, [{}] if step.endswith("[]") else {})
            if isinstance(held, str):
                raise TypeError(f"{path}: {name} is both a value and an object")
            node = held[0] if isinstance(held, list) else held
        node[leaf] = kind
    return root


def duckdb_type(node: str | Tree | list[Tree]) -> str:
    """Write a tree as a DuckDB type.

    Args:
        node: A value, an object or a list of objects.

    Returns:
        Type text such as ``STRUCT("prompt_tokens" JSON)[]``.
    """
    if isinstance(node, str):
        return node
    if isinstance(node, list):
        return f"{duckdb_type(node[0])}[]"
    members = ", ".join(f"{identifier(name)} {duckdb_type(held)}" for name, held in node.items())
    return f"STRUCT({members})"


def json_structure(node: str | Tree | list[Tree]) -> object:
    """Write a tree as the structure that ``from_json`` and ``json_transform`` take.

    Args:
        node: A value, an object or a list of objects.

    Returns:
        Nested objects, to be written as JSON.
    """
    if isinstance(node, dict):
        return {name: json_structure(held) for name, held in node.items()}
    return [json_structure(node[0])] if isinstance(node, list) else node


def braced(text: str) -> str:
    """Double the braces of SQL that becomes part of a reshape.

    Args:
        text: SQL without placeholders.

    Returns:
        The text, which ``str.format`` turns back.
    """
    return text.replace("{", "{{").replace("}", "}}")
