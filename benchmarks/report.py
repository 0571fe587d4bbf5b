"""The table, the chart and the description of machine, versions and data that a run of the benchmarks leaves."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measuring import Measured

HERE = Path(__file__).parent
PACKAGES = ("tenfold", "duckdb", "polars", "numpy", "numba", "pyspark", "litellm", "genai-prices", "orjson")
# Of the chart: pixels, and the share at which bars end.
_WIDTH, _LONGEST = 420, 1.4
HEAD = ("benchmark", "what is compared", "ratio", "bound", "", "rows", "rows/s", "peak MB", "of", "note")


def lines(measured: Sequence[Measured], slack: float = 1.0) -> str:
    """Write results for a terminal.

    Args:
        measured: The results.
        slack: Factor by which bounds may be missed.

    Returns:
        One line a result.
    """
    return "\n".join(
        f"{_verdict(one, slack):<6} {one.name:<38}{_ratio(one):>10}  {_bound(one):<12}{_count(one.rows_per_s):>13}/s"
        f"{_count(one.peak_mb):>8} MB  {one.what}{f' ({one.note})' if one.note else ''}"
        for one in measured
    )


def write(measured: Sequence[Measured], about: Mapping[str, str], folder: Path = HERE) -> None:
    """Write ``RESULTS.md``, ``results.json`` and ``results.svg``.

    Args:
        measured: The results of a whole run.
        about: Module to a sentence on its data.
        folder: Where to.
    """
    described = {"made_at": datetime.now(UTC).strftime("%Y-%m-%d"), **machine(), "packages": packages()}
    document = {**described, "data": dict(about), "results": [_entry(one) for one in measured]}
    (folder / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / "RESULTS.md").write_text(table(measured, about, described))
    chart(measured).save(folder / "results.svg")


def machine() -> dict[str, str]:
    """Describe the machine.

    Returns:
        ``commit``, ``machine`` (processor, cores, memory), ``system``, ``python``.
    """
    return {
        "commit": _commit(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gb():.0f} GB of memory",
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "python": platform.python_version(),
    }


def packages() -> dict[str, str]:
    """Say which versions were measured.

    Returns:
        Package to version, for those that are installed.
    """
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def table(measured: Sequence[Measured], about: Mapping[str, str], described: Mapping[str, object]) -> str:
    """Write the table with what is needed to read it.

    Args:
        measured: The results.
        about: Module to a sentence on its data.
        described: What ``results.json`` says of machine and versions.

    Returns:
        Markdown.
    """
    rows = [
        (
            one.name, one.what, _ratio(one), _bound(one), _verdict(one), _count(one.rows), _count(one.rows_per_s),
            _count(one.peak_mb), one.unit, one.note,
        )
        for one in measured
    ]  # fmt: skip
    right = {"ratio", "rows", "rows/s", "peak MB"}
    cells = [HEAD, tuple("---:" if name in right else "---" for name in HEAD), *rows]
    installed = described["packages"]
    assert isinstance(installed, dict)
    return "\n".join([
        "# Results of the benchmarks",
        "",
        "Written by `make bench`; do not edit. A ratio compares two works that ran in turns in one process: the least of",
        "three CPU times of each (user and system, all threads), unless its line says wall or memory. Rows/s are those of",
        "the left side, by CPU second. Peak memory is of a fresh process that does the left side, libraries included.",
        "",
        f"- Made {described['made_at']} at commit {described['commit']}.",
        f"- Machine: {described['machine']}; {described['system']}.",
        f"- Python {described['python']}; {', '.join(f'{name} {number}' for name, number in installed.items())}.",
        "",
        "![Ratio as a share of its bound](results.svg)",
        "",
        *(f"| {' | '.join(row)} |" for row in cells),
        "",
        "## Data",
        "",
        *(f"- **{name}**: {sentence}" for name, sentence in about.items()),
        "",
    ])  # fmt: skip


def chart(measured: Sequence[Measured]) -> object:
    """Draw every ratio that has a bound as a share of it: what ends left of the line holds.

    Args:
        measured: The results.

    Returns:
        The Altair chart.
    """
    import altair as alt

    held = [one for one in measured if one.ratio is not None and one.bound is not None]
    rows = [
        {
            "name": one.name,
            "share": min(_share(one), _LONGEST),
            "label": f"{_ratio(one)}, bound {_bound(one)}",
            "is_held": "holds" if one.is_held() else "missed",
        }
        for one in held
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("name:N", sort=[row["name"] for row in rows], title=None, axis=alt.Axis(labelLimit=320, ticks=False)),
    )
    bars = base.mark_bar(height=13).encode(
        x=alt.X(
            "share:Q",
            title="share of the bound that is used (1 = at the bound)",
            scale=alt.Scale(domain=[0, _LONGEST]),
            axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1, 1.25], format=".2~f"),
        ),
        color=alt.Color(
            "is_held:N",
            title=None,
            scale=alt.Scale(domain=["holds", "missed"], range=["#4c78a8", "#c44e52"]),
            legend=alt.Legend(orient="top"),
        ),
    )
    labels = base.mark_text(align="left", fontSize=11).encode(x=alt.value(_WIDTH + 8), text="label:N")
    rule = alt.Chart(alt.Data(values=[{"at": 1}])).mark_rule(color="#222", strokeDash=[4, 3]).encode(x="at:Q")
    return (
        (bars + labels + rule)
        .properties(width=_WIDTH, height=alt.Step(21), title="Ratios as shares of their bounds")
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=11, titleFontSize=11, titleFontWeight="normal", grid=False)
        .configure_title(anchor="start", fontSize=13)
    )


def _entry(one: Measured) -> dict[str, object]:
    return {**one._asdict(), "rows_per_s": one.rows_per_s, "is_held": one.is_held()}


def _share(one: Measured) -> float:
    assert one.ratio is not None
    assert one.bound is not None
    return one.ratio / one.bound if one.is_lower_better else one.bound / one.ratio


def _verdict(one: Measured, slack: float = 1.0) -> str:
    if one.ratio is None:
        return "-"
    if one.bound is None:
        return "shown"
    return "holds" if one.is_held(slack) else "MISSED"


def _ratio(one: Measured) -> str:
    value = one.ratio
    if value is None:
        return "-"
    if one.unit == "memory":
        return f"{value:,.0f} MB"
    return f"{value:,.0f}x" if value >= 100 else f"{value:.2f}x" if value >= 0.1 else f"{value:.4f}x"


def _bound(one: Measured) -> str:
    if one.bound is None:
        return "-"
    return f"{'<=' if one.is_lower_better else '>='} {one.bound:,g}{' MB' if one.unit == 'memory' else 'x'}"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _commit() -> str:
    run = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=HERE, check=False)  # fmt: skip
    return run.stdout.strip() or "unknown"
