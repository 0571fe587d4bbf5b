"""Files beside the log: what was done, samples of hosts, samples of engines.

Events have columns ``ts, kind, what, where``; samples ``ts, replica, metric, value``; as CSV with a header or one JSON
object a line. Samples of engines may also be one object a snapshot (``ts, replica`` and a key a metric), or the text of
``/metrics`` with a time on each line.
"""

from __future__ import annotations

import csv
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from tenfold import config
from tenfold.errors import AssumptionError, near
from tenfold.latency.records import Event, Samples
from tenfold.latency.visible import visible
from tenfold.logs.buckets.prometheus import LABEL, LINE

_EVENT = ("ts", "kind", "what", "where")
_SAMPLE = ("ts", "replica", "metric", "value")
# Labels of a metric that say whose it is, the closest first.
_REPLICAS = ("replica", "pod", "instance", "host", "hostname", "node")
# Seconds since 1970 above which a number must be milliseconds: the year 5138.
_MILLISECONDS = 1e11


class _Row(NamedTuple):
    """A line of a file: its number and what it says."""

    line: int
    said: Mapping[str, object]


class _Sample(NamedTuple):
    """A sample as it was read."""

    ts_s: float
    replica: str
    metric: str
    value: float


def read_events(path: str | Path, zone: str | None = None) -> tuple[Event, ...]:
    """Read what was done: deploys, changes of configuration, scaling, restarts, releases of clients.

    Args:
        path: CSV or JSON lines with ``ts, kind, what`` and, if it was not done everywhere, ``where``.
        zone: Zone of times without an offset; by default that of ``tenfold.toml``, else UTC.

    Returns:
        The events in order of time.

    Raises:
        AssumptionError: A line cannot be read; names file, line and key.
    """
    file = Path(path)
    times = _Times(file, zone)
    events: list[Event] = []
    for row in _rows(file, ("ts", "kind", "what"), _EVENT):
        kind, what = (_word(file, row, key, _EVENT) for key in ("kind", "what"))
        events.append(Event(times.of(row), kind, what, _text(row, "where"), row.line))
    return tuple(sorted(events, key=lambda event: event.ts_s))


def read_samples(path: str | Path, zone: str | None = None) -> Samples:
    """Read samples of hosts: clocks, power, temperature, throttling, CPU.

    Args:
        path: CSV or JSON lines with ``ts, metric, value`` and, if it is not of all, ``replica``.
        zone: Zone of times without an offset; by default that of ``tenfold.toml``, else UTC.

    Returns:
        The samples in order of time.

    Raises:
        AssumptionError: A line cannot be read; names file, line and key.
    """
    file = Path(path)
    times = _Times(file, zone)
    return _samples(_long(file, row, times) for row in _rows(file, ("ts", "metric", "value"), _SAMPLE))


def read_metrics(path: str | Path, zone: str | None = None) -> Samples:
    """Read samples of engines.

    Args:
        path: As ``read_samples``; or a snapshot a line (``ts, replica`` and a key a metric); or the text of
            ``/metrics`` with times.
        zone: Zone of times without an offset; by default that of ``tenfold.toml``, else UTC.

    Returns:
        The samples in order of time, each metric as the file calls it.

    Raises:
        AssumptionError: A line cannot be read; names file, line and key.
    """
    file = Path(path)
    if _is_exposition(file):
        return _samples(_exposed(file))
    times = _Times(file, zone)
    return _samples(sample for row in _rows(file, ("ts",), _SAMPLE) for sample in _wide_or_long(file, row, times))


def _samples(found: Iterable[_Sample]) -> Samples:
    rows = sorted(found, key=lambda row: row.ts_s)
    ts, replica, metric, value = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Samples(
        np.array(ts, dtype=np.float64),
        np.array(replica, dtype=np.str_),
        np.array(metric, dtype=np.str_),
        np.array(value, dtype=np.float64),
    )


def _long(file: Path, row: _Row, times: _Times) -> _Sample:
    return _Sample(
        times.of(row), _text(row, "replica"), _word(file, row, "metric", _SAMPLE), _number(file, row, "value")
    )


def _wide_or_long(file: Path, row: _Row, times: _Times) -> Iterator[_Sample]:
    if "metric" in row.said or "value" in row.said:
        yield _long(file, row, times)
        return
    replica = next((_text(row, key) for key in _REPLICAS if _text(row, key)), "")
    for key, said in row.said.items():
        if key != "ts" and key not in _REPLICAS and said is not None and said != "":
            yield _Sample(times.of(row), replica, visible(key), _number(file, row, key))


class _Times:
    """Reads times; the same text, which samples of many hosts share, once."""

    def __init__(self, file: Path, zone: str | None) -> None:
        self._file = file
        self._zone = zone or config.settings().report_zone
        self._read: dict[object, float] = {}

    def of(self, row: _Row) -> float:
        """Give a line's time in seconds since 1970."""
        said = row.said.get("ts")
        if not isinstance(said, str | int | float | None):
            raise AssumptionError(f'{self._file}, line {row.line}: "ts" is no time: {reprlib.repr(said)}')
        found = self._read.get(said)
        if found is None:
            found = self._read[said] = self._seconds(row, said)
        return found

    def _seconds(self, row: _Row, said: object) -> float:
        number = _float(said)
        if isinstance(said, str) and len(said.strip()) == 8 and said.strip().isdigit():
            number = None  # 20260908 is a day, not a second of 1970
        if number is not None and number > _MILLISECONDS:
            number /= 1000
        if number is not None and number >= 0 and number < _MILLISECONDS:
            return number
        place = f"{self._file}, line {row.line}: ts"
        instant = config.instant(str(said or "").strip(), self._zone, place)
        return instant.timestamp() if instant is not None else np.nan


def _float(said: object) -> float | None:
    if isinstance(said, bool) or not isinstance(said, str | int | float):
        return None
    try:
        return float(said)
    except (ValueError, OverflowError):
        return None


def _text(row: _Row, key: str) -> str:
    said = row.said.get(key)
    return "" if said is None else visible(str(said)).strip()


def _word(file: Path, row: _Row, key: str, known: tuple[str, ...]) -> str:
    said = _text(row, key)
    if not said:
        raise AssumptionError(f'{file}, line {row.line}: "{key}" is empty. A line holds: {", ".join(known)}')
    return said


def _number(file: Path, row: _Row, key: str) -> float:
    number = _float(row.said.get(key))
    if number is None or not np.isfinite(number):
        raise AssumptionError(
            f'{file}, line {row.line}: "{key}" is no number: {reprlib.repr(row.said.get(key))}. '
            "Write a plain number, such as 0.91, or leave the line out"
        )
    return number


def _rows(file: Path, needed: tuple[str, ...], known: tuple[str, ...]) -> Iterator[_Row]:
    lines = _lines(file)
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise AssumptionError(f"{file}: is empty. Write CSV with the columns {', '.join(known)}, or JSON lines")
    read: Callable[[Path, list[str], tuple[str, ...], tuple[str, ...]], Iterator[_Row]]
    read = _objects if first.lstrip().startswith("{") else _table
    return read(file, lines, needed, known)


def _lines(file: Path) -> list[str]:
    try:
        # other separators, such as U+2028, are text within a cell
        return file.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise AssumptionError(f"{file}: cannot read it: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise AssumptionError(f"{file}: is no UTF-8 text. Write CSV or JSON lines") from error


def _table(file: Path, lines: list[str], needed: tuple[str, ...], known: tuple[str, ...]) -> Iterator[_Row]:
    names: list[str] = []
    for line, cells in _cells(file, lines):
        if not any(cell.strip() for cell in cells):
            continue
        if not names:
            names = [cell.strip().lower() for cell in cells]
            twice = [name for name in names if name and names.count(name) > 1]
            if twice:
                raise AssumptionError(f'{file}, line {line}: two columns "{twice[0]}". Leave one out or rename it')
            _has(file, line, names, needed, known)
        elif len(cells) > len(names):
            raise AssumptionError(
                f"{file}, line {line}: {len(cells)} cells under {len(names)} columns. "
                "Put text that holds commas in double quotes"
            )
        else:
            yield _Row(line, dict(zip(names, cells, strict=False)))


def _cells(file: Path, lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Give each row of a table with the line that it begins in."""
    reader = csv.reader((f"{line}\n" for line in lines), strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise AssumptionError(
            f"{file}, line {line}: is no CSV ({error}). Close each double quote; within a cell, write it twice"
        ) from error


def _objects(file: Path, lines: list[str], needed: tuple[str, ...], known: tuple[str, ...]) -> Iterator[_Row]:
    decoder = msgspec.json.Decoder(dict[str, object])
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            said = decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise AssumptionError(f"{file}, line {number}: is no JSON object ({error}). One object a line") from error
        _has(file, number, said, needed, known)
        yield _Row(number, said)


def _has(file: Path, line: int, names: Iterable[str], needed: tuple[str, ...], known: tuple[str, ...]) -> None:
    there = list(names)
    for key in needed:
        if key not in there:
            others = [name for name in there if name not in known]
            raise AssumptionError(
                f'{file}, line {line}: no "{key}".{near(key, others)} A line holds: {", ".join(known)}'
            )


def _is_exposition(file: Path) -> bool:
    first = next((line.strip() for line in _lines(file) if line.strip()), "")
    return first.startswith("#") or LINE.fullmatch(first) is not None


def _exposed(file: Path) -> Iterator[_Sample]:
    for number, line in enumerate(_lines(file), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = LINE.fullmatch(text)
        value = None if found is None else _float(found["value"])
        if found is None or value is None:
            raise AssumptionError(f"{file}, line {number}: no sample: write name{{labels}} value time_in_ms")
        if found["time"] is None:
            raise AssumptionError(
                f"{file}, line {number}: {found['name']} has no time. Write it behind the value, in milliseconds since "
                f"1970, or give CSV with the columns {', '.join(_SAMPLE)}"
            )
        at = _float(found["time"])
        if at is None or not 0 <= at < _MILLISECONDS * 1000:
            raise AssumptionError(
                f"{file}, line {number}: {found['name']} has no time of this calendar: {reprlib.repr(found['time'])}. "
                "Write milliseconds since 1970"
            )
        if np.isfinite(value):
            labels = {label["key"]: label["text"] for label in LABEL.finditer(found["labels"] or "")}
            replica = visible(next((labels[key] for key in _REPLICAS if labels.get(key)), ""))
            yield _Sample(at / 1000, replica, found["name"], value)
