"""``tenfold serving prices``: what GPUs cost an hour, by whom and when; and what a catalogue would add."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from tenfold.cli.common import Json, Screen, plain_table, print_json
from tenfold.errors import AssumptionError
from tenfold.serving import gpu_price_import
from tenfold.serving.gpu_prices import GpuPrice, PriceRange, gpu_price, gpu_prices


def prices(
    gpu: Annotated[str | None, typer.Argument(help="GPU, such as h100-sxm.", show_default=False)] = None,
    commitment: Annotated[
        str,
        typer.Option("--commitment", metavar="C", help="on_demand, reserved_1y, reserved_3y, spot, contract or owned."),
    ] = "on_demand",
    provider: Annotated[str | None, typer.Option("--provider", metavar="P", help="Only this provider.")] = None,
    catalogue: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="CSV of SkyPilot or gpuhunt: print the entries it would add."),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Show what a GPU costs an hour, contradictory sources side by side; or turn a catalogue into price entries."""
    if catalogue is not None:
        _import(catalogue, provider, json)
    elif gpu is None:
        raise AssumptionError("name a GPU, such as h100-sxm, or give --import FILE")
    else:
        _show(gpu_price(gpu, commitment, provider), json)


def _show(found: PriceRange, json: bool) -> None:
    if json:
        print_json(
            {
                "gpu": found.gpu,
                "commitment": found.commitment,
                "usd_per_gpu_hour": {"low": f"{found.low:f}", "median": f"{found.median:f}", "high": f"{found.high:f}"},
                "entries": [_as_dict(one) for one in found.entries],
                "not_counted": [_as_dict(one) for one in found.outdated],
            }
        )
        return
    screen = Screen()
    screen.line(
        f"{found.gpu}, {found.commitment}: ${found.median:f} a GPU and hour in the median over providers, "
        f"${found.low:f} to ${found.high:f}",
        style="bold",
    )
    table = plain_table(
        ("provider", False), ("USD/h", True), ("of", False), ("source", False), ("note", False),
        wraps=("source", "note"),
    )  # fmt: skip
    for one in sorted((*found.entries, *found.outdated), key=lambda entry: entry.usd_per_gpu_hour):
        table.add_row(one.provider, f"{one.usd_per_gpu_hour:f}", f"{one.said}", one.source, _note(one))
    screen.table(table)


def _note(one: GpuPrice) -> str:
    return f"not counted: {one.note or 'outdated'}" if one.outdated else one.note


def _as_dict(one: GpuPrice) -> dict[str, Any]:
    return one.model_dump() | {"usd_per_gpu_hour": f"{one.usd_per_gpu_hour:f}"}


def _import(file: Path, provider: str | None, json: bool) -> None:
    found = gpu_price_import.read(file, provider, datetime.now(tz=UTC).date())
    there = {(one.gpu, one.provider, one.commitment, one.usd_per_gpu_hour) for one in gpu_prices()}
    new = [one for one in found.entries if (one.gpu, one.provider, one.commitment, one.usd_per_gpu_hour) not in there]
    if json:
        print_json({"format": found.format, "entries": [_as_dict(one) for one in new], "unknown": dict(found.unknown)})
        return
    sys.stdout.write("\n".join(gpu_price_import.toml(one) for one in new))
    sys.stderr.write(
        f"{len(new):,} entries of {found.format} to append, {len(found.entries) - len(new):,} there already\n"
    )
    if found.unknown:
        names = ", ".join(f"{name} ({count:,})" for name, count in sorted(found.unknown.items()))
        sys.stderr.write(f"left out, not in gpus.toml: {names}\n")
