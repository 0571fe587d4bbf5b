"""Seeded damage to log lines: random edits of bytes, and edits of a record's structure."""

from __future__ import annotations

import csv
import io
import json
import re
from random import Random
from typing import Any


class Raw(str):
    """JSON text that is written as it stands."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object whose keys may repeat."""


# What may stand where a count, a text or an object should.
ODD: tuple[Any, ...] = (
    *("1,024", "12", "007", " 7", "7 ", "5.000", "1.000", "1.0", "1e2", "+5", "-5", "many", "NaN", "", "none", "١٢"),
    *(0, 1, 7, 1023, 1024, 999_999_999, 1_000_000_000, -1, 2**63, 2**64, 10**30, 10**60),
    *(5.0, 3.7, 0.5, 1e9, 1e22, 1e-3, True, False, None, [], [5], [None], [{}], {}, {"a": 1}, [[]]),
    *map(
        Raw, ("1e3", "1E3", "5.000", "-0", "-0.0", "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "1.0e0", "5E-1")
    ),
    *map(Raw, ('"\\u0031"', '"\\ud83d"', '"a\\u2028b"', '"\\u0000"', '""')),
)
# Bytes that a torn write, another encoding or another system leaves.
_STRANGE = (
    *(b"\0", b"\0\0\0\0", b"\xff", b"\xc3", b"\xed\xa0\xbd", b"\xef\xbb\xbf", b"\r", b"\xe2\x80\xa8", b"\xc2\x85"),
    *(b'"', b",", b"{", b"}", b"[", b"]", b":", b"\\", b"-", b".", b"9", b"\t", b"\x01", b"\x0c", b"\xc2\xa0", b" "),
)
LINES = (b"[]", b"42", b"null", b'"text"', b"{}", b"", b"   ", b"\0\0\0", b"{", b"}", b"\xff\xfe", b"true", b"//")


def written(value: Any) -> str:
    """Write a value as JSON, raw pieces and repeated keys as they are."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{json.dumps(key)}: {written(held)}" for key, held in value) + "}"
    if isinstance(value, dict):
        return written(Pairs(value.items()))
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def edited_bytes(rng: Random, line: bytes) -> bytes:
    """Flip, insert, delete, cut or overwrite some bytes of a line."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, kind = rng.randrange(len(line) + 1), rng.randrange(9)
        if kind < 2 and line:
            at = min(at, len(line) - 1)
            line = line[:at] + bytes([line[at] ^ (1 << rng.randrange(8))]) + line[at + 1 :]
        elif kind < 5:
            line = line[:at] + rng.choice(_STRANGE) + line[at:]
        elif kind == 5:
            line = line[:at] + line[at + rng.choice((1, 1, 1, 2, 5, 20)) :]
        elif kind == 6:
            line = line[:at]
        elif kind == 7:
            line = b"\0" * rng.choice((1, 8, 64)) + line
        else:
            line = line[:at] + b"\0" * rng.randrange(1, 9) + line[at + rng.randrange(9) :]
    return line


def edited_record(rng: Random, record: dict[str, Any]) -> Any:
    """Change a record's keys, types, order or depth."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = list(_objects(record))
        numbers = [(held, key) for held in found for key, value in held.items() if type(value) is int]
        anywhere = [(held, key) for held in found for key in held]
        if not anywhere:
            break
        held, key = rng.choice(numbers if numbers and rng.random() < 0.6 else anywhere)
        edit = rng.choices(_EDITS, _WEIGHTS)[0]
        if edit is None:
            return _twice(rng, record, held, key)
        edit(rng, held, key, anywhere)
    return record


Places = list[tuple[dict[str, Any], str]]


# An id, as the sources of lines write it; an odd one must not be another line's, too.
_ID = re.compile("[0-9a-f]{12}")


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.search(value) is not None


def _oddly(rng: Random, held: dict[str, Any], key: str, _: Places) -> None:
    own = (None, "", "none", rng.random(), rng.randrange(10**12), [rng.random()], {"a": rng.random()})
    held[key] = rng.choice(own if _is_id(held[key]) else ODD)


def _another_count(rng: Random, held: dict[str, Any], key: str, _: Places) -> None:
    held[key] = rng.choice((0, 1, 5, rng.randrange(2000), rng.randrange(10**6)))


def _dropped(_: Random, held: dict[str, Any], key: str, __: Places) -> None:
    del held[key]


def _renamed(rng: Random, held: dict[str, Any], key: str, _: Places) -> None:
    held[rng.choice((key + "x", key.upper(), key.swapcase(), f" {key}", ""))] = held.pop(key)


def _late(_: Random, held: dict[str, Any], key: str, __: Places) -> None:
    held[key] = held.pop(key)


def _swapped(rng: Random, held: dict[str, Any], key: str, anywhere: Places) -> None:
    other, name = rng.choice(anywhere)
    texts = isinstance(held[key], str) or isinstance(other[name], str)  # an id that another line has too
    if not texts and not _within(held[key], other) and not _within(other[name], held):
        held[key], other[name] = other[name], held[key]


def _deep(rng: Random, held: dict[str, Any], key: str, _: Places) -> None:
    for _ in range(rng.choice((1, 2, 60))):
        held[key] = [held[key]] if rng.random() < 0.5 else {"in": held[key]}


def _strange_key(rng: Random, held: dict[str, Any], _: str, __: Places) -> None:
    held[rng.choice(("zz", "cost", "x-note", "a.b", "usage_", "ключ"))] = rng.choice(ODD)


# None: a key stands twice, which needs the whole record.
_EDITS = (_oddly, _another_count, _dropped, _renamed, _late, _swapped, _deep, _strange_key, None)
_WEIGHTS = (4, 1, 1, 1, 1, 1, 1, 1, 1)


def _objects(value: Any) -> Any:
    if isinstance(value, dict):
        yield value
        for held in value.values():
            yield from _objects(held)
    elif isinstance(value, list):
        for held in value:
            yield from _objects(held)


def _within(value: Any, wanted: Any) -> bool:
    return any(held is wanted for held in _objects(value))


def _twice(rng: Random, value: Any, where: dict[str, Any], key: str) -> Any:
    """Say one key of one object twice."""
    if isinstance(value, list):
        return [_twice(rng, one, where, key) for one in value]
    if not isinstance(value, dict):
        return value
    pairs = Pairs((name, _twice(rng, held, where, key)) for name, held in value.items())
    if value is where:
        pairs.insert(rng.randrange(len(pairs) + 1), (key, rng.choice((value[key], rng.choice(ODD)))))
    return pairs


def as_table(rows: list[list[Any]]) -> list[bytes]:
    """Write records as lines of CSV."""
    lines: list[bytes] = []
    for row in rows:
        held = io.StringIO()
        csv.writer(held, lineterminator="").writerow(row)
        lines.append(held.getvalue().encode("utf-8", "surrogatepass"))
    return lines


_CELLS = (
    *("", " ", "0", "5.0", "3.7", "1,024", "1.024", "1e3", "-1", "NaN", "true", "many", "5 ", " 5", "12345678901"),
    *('"', 'a"b', "two\nlines", "a,b", "1.000", "null", "None", "{}", '{"a": 1}', "\u2028", "\x00", "٣", "007"),
)


def edited_cells(rng: Random, cells: list[Any]) -> list[Any]:
    """Change the cells of a record: what stands in them, or how many there are."""
    cells = list(cells)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(cells)) if cells else 0
        kind = rng.randrange(8)
        is_id = bool(cells) and (_is_id(cells[at]) or at == 0)
        if kind < 5 and is_id:
            cells[at] = rng.choice(("", " ", "None", f"{rng.random()}", str(rng.randrange(10**12))))
        elif is_id and kind > 4:
            continue
        elif kind < 5 and cells:
            cells[at] = rng.choice(_CELLS)
        elif kind == 5 and cells:
            del cells[at]
        elif kind == 6:
            cells.insert(at, rng.choice(_CELLS))
        elif cells:
            other = rng.randrange(len(cells))
            if _is_id(cells[other]):
                continue
            cells[at], cells[other] = cells[other], cells[at]
    return cells
