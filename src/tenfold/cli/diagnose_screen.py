"""What ``tenfold diagnose`` prints for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.padding import Padding
from rich.table import Table

from tenfold.cli.common import Screen, plain_table
from tenfold.display import counted, percent
from tenfold.latency.amounts import NAMES, spaced, unit_of
from tenfold.latency.answers import Diagnosis
from tenfold.latency.comparing import Comparison
from tenfold.latency.records import Interval
from tenfold.latency.windows import Share
from tenfold.latency.wording import CauseSaid, told

# Columns of a cause's name beside which its share stands.
_NAME = 44
_INDENT = 3
# Sentences of evidence of a first cause, and of what follows from one, on the screen.
_EVIDENCE, _LESS = 4, 2


def show(screen: Screen, one: Diagnosis, where: str | None = None, *, is_one_of_several: bool = False) -> None:
    """Print a diagnosis, the answer first.

    Args:
        screen: Where to print.
        one: The diagnosis of one model.
        where: Predicate that says whose latencies are looked at; None: all.
        is_one_of_several: Whether the answer has to name its model.
    """
    texts = told(one)
    screen.line(f"{one.model}: {texts.answer}" if is_one_of_several else texts.answer, style="bold")
    screen.said((*texts.windows, *([("where", where)] if where is not None else [])))
    if texts.heed:
        screen.line(texts.heed)
    if texts.shifts:
        screen.line()
        for line in _packed(texts.shifts, screen.console.width):
            screen.line(line)
        if texts.split:
            screen.line(texts.split)
    for cause in texts.causes:
        if cause.number:
            screen.line()
        _show_cause(screen, cause)
    if texts.rest:
        screen.line()
        screen.said(texts.rest)
    if texts.next:
        screen.line()
        screen.said([("measure" if not at else "", text) for at, text in enumerate(texts.next)])
    for note in texts.notes:
        screen.line(f"Note: {note}")


def show_mix(screen: Screen, mix: Iterable[Share]) -> None:
    """Print how the requests are shared among models.

    Args:
        screen: Where to print.
        mix: Shares of the models.
    """
    table = plain_table(
        ("model", False), ("requests before", True), ("after", True), ("share before", True), ("after", True)
    )
    for one in mix:
        shares = percent(one.before_ratio, 1), percent(one.after_ratio, 1)
        table.add_row(one.model, f"{one.before:,}", f"{one.after:,}", *shares)
    screen.line("Mix of models; each is diagnosed by itself:")
    screen.table(table)


def show_comparison(screen: Screen, found: Comparison) -> None:
    """Print two systems side by side.

    Args:
        screen: Where to print.
        found: The comparison.
    """
    first, second = found.requests
    screen.line(f"A: {counted(first, 'request')}, B: {counted(second, 'request')}; no cause is sought", style="bold")
    screen.line()
    table = plain_table(("", False), ("", False), ("A", True), ("[95 %]", False), ("B", True), ("[95 %]", False),
                        ("B / A", True), ("[95 %]", False))  # fmt: skip
    last = ""
    for row in found.rows:
        unit = unit_of(row.component, row.before.mid, row.after.mid)
        cells = [cell for one in (row.before, row.after) for cell in _cells(one, unit.text, f" {unit.name}")]
        ratio = _cells(row.ratio, lambda value: f"{value:.2f}", "")
        name = "" if row.component == last else NAMES[row.component]
        table.add_row(name, f"p{row.quantile * 100:g}", *cells, *ratio)
        last = row.component
    screen.table(table)
    if found.split:
        parts = ", ".join(f"{NAMES[name]} {percent(share)}" for name, share in found.split.items())
        screen.line()
        screen.line(
            f"Of the difference of the slow requests' time (around p{found.split_quantile * 100:g} of E2E): {parts}"
        )
    for note in found.notes:
        screen.line(f"Note: {spaced(note)}")


def _cells(one: Interval, text: Callable[[float], str], unit: str) -> tuple[str, str]:
    return f"{text(one.mid)}{unit}", f"[{text(one.low)}, {text(one.high)}]"


def _show_cause(screen: Screen, cause: CauseSaid) -> None:
    indent = _INDENT if cause.number else 2 * _INDENT
    mark = f"{cause.number:<{_INDENT}}" if cause.number else f"{'└':>{_INDENT + 1}}  "
    share = f"{cause.share}, {cause.follows}" if cause.follows else cause.share
    beside = f"{cause.title:<{_NAME + _INDENT - indent}}  {share}"
    lines = Table.grid()
    lines.add_column(no_wrap=True, width=indent)
    lines.add_column(overflow="fold")
    fits = indent + len(beside) <= screen.console.width
    lines.add_row(mark, beside if fits else f"{cause.title}\n{share}", style="bold" if cause.number else None)
    most = _EVIDENCE if cause.number else _LESS
    for text in cause.evidence[:most]:
        lines.add_row("", text)
    rest = len(cause.evidence) - most
    if rest > 0:
        lines.add_row("", f"({rest} more in --json and --out)", style="dim")
    screen.console.print(lines)
    if cause.said:
        said = Table.grid(padding=(0, 2, 0, 0))
        said.add_column(style="dim", no_wrap=True)
        said.add_column(overflow="fold")
        for label, text in cause.said:
            said.add_row(label, text)
        screen.console.print(Padding(said, (0, 0, 0, indent)))


def _packed(texts: Iterable[str], width: int) -> list[str]:
    """Put texts on lines, as many as fit whole."""
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + len(text) + 3 <= width:
            lines[-1] += f" · {text}"
        else:
            lines.append(text)
    return lines
