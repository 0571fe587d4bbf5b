"""GPU prices from the CSV catalogues of SkyPilot (``vms.csv``) and gpuhunt, as entries to append to our own file.

A catalogue prices machines; a GPU costs the machine's price over its GPUs. Of a provider's machines and regions the
cheapest and the dearest are taken, so that the spread stays visible and the file stays short.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from tenfold.errors import ServingError
from tenfold.money import PUSD_PER_USD, usd_text
from tenfold.serving.gpu_prices import GpuPrice
from tenfold.serving.specs import Gpu, gpu

_CENTS = Decimal("0.0001")
_NONE = ("", "0", "0.0")


class Format(NamedTuple):
    """Where a catalogue has what.

    Args:
        name: The package that makes it.
        machine: Column of the machine's name.
        gpu: Column of the GPU's name.
        gpus: Column of GPUs a machine.
        price: Column of its price an hour.
        region: Column of its region.
        provider: Column of the provider, or empty where a file is of one provider.
    """

    name: str
    machine: str
    gpu: str
    gpus: str
    price: str
    region: str
    provider: str


FORMATS = (
    Format("skypilot", "InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region", ""),
    Format("gpuhunt", "instance_name", "gpu_name", "gpu_count", "price", "location", "provider"),
)


class Offer(NamedTuple):
    """A machine's price by the GPU.

    Args:
        usd: USD for one GPU and hour.
        where: Machine and region.
    """

    usd: Decimal
    where: str


class Imported(NamedTuple):
    """What a catalogue holds.

    Args:
        format: The package that made it.
        entries: Entries, cheapest and dearest of each GPU and commitment.
        unknown: Rows by GPU that ``gpus.toml`` does not know.
    """

    format: str
    entries: tuple[GpuPrice, ...]
    unknown: Mapping[str, int]


def read(path: Path, provider: str | None, day: date) -> Imported:
    """Read a catalogue.

    Args:
        path: CSV file.
        provider: Whose prices they are, where the file does not say.
        day: When it was read.

    Returns:
        Entries to append to ``pricing/gpu_prices.toml``.

    Raises:
        ServingError: It is of no known form, a number cannot be read, or nobody says whose prices they are.
    """
    offers: defaultdict[tuple[str, str, str], list[Offer]] = defaultdict(list)
    unknown: Counter[str] = Counter()
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        form = _format(path, set(rows.fieldnames or ()))
        for row in rows:
            if not row[form.gpu] or row[form.gpus] in _NONE:
                continue
            place = f"{path}, line {rows.line_num}"
            found = _gpu(row[form.gpu], _memory_gb(row))
            if found is None:
                unknown[row[form.gpu]] += 1
                continue
            whose = provider or row.get(form.provider, "")
            if not whose:
                raise ServingError(f"{place}: names no provider; say --provider")
            for commitment, price in _prices(form, row):
                usd = (_number(price, place) / _number(row[form.gpus], place)).quantize(_CENTS, ROUND_HALF_EVEN)
                offers[found.name, whose.lower(), commitment].append(
                    Offer(usd, f"{row[form.machine]} in {row[form.region]}")
                )
    entries = [entry for key, made in offers.items() for entry in _ends(key, made, f"{form.name} {path.name}", day)]
    return Imported(form.name, tuple(entries), unknown)


def toml(entry: GpuPrice) -> str:
    """Write an entry as it stands in ``pricing/gpu_prices.toml``.

    Args:
        entry: The entry.

    Returns:
        Its TOML table.
    """
    note = [f'note = "{entry.note}"'] if entry.note else []
    return "\n".join(
        (
            "[[gpu_price]]",
            f'gpu = "{entry.gpu}"',
            f'provider = "{entry.provider}"',
            f'commitment = "{entry.commitment}"',
            f"usd_per_gpu_hour = {usd_text(int(entry.usd_per_gpu_hour * PUSD_PER_USD))}",
            f'source = "{entry.source}"',
            f"checked = {entry.checked}",
            *note,
            "",
        )
    )


def _format(path: Path, columns: set[str]) -> Format:
    for form in FORMATS:
        if {form.machine, form.gpu, form.gpus, form.price, form.region} <= columns:
            return form
    forms = "; ".join(f"{one.name} has {one.machine}, {one.gpu}, {one.gpus}, {one.price}" for one in FORMATS)
    raise ServingError(f"{path}: neither a SkyPilot nor a gpuhunt catalogue ({forms})")


def _prices(form: Format, row: Mapping[str, str]) -> list[tuple[str, str]]:
    if form.name == "gpuhunt":
        return [("spot" if row.get("spot", "").lower() == "true" else "on_demand", row[form.price])]
    both = (("on_demand", row[form.price]), ("spot", row.get("SpotPrice", "")))
    return [(commitment, price) for commitment, price in both if price]


def _number(text: str, place: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise ServingError(f'{place}: "{text}" is no number') from error
    if not number.is_finite() or number <= 0:
        raise ServingError(f"{place}: {text} is no price and no count")
    return number


def _memory_gb(row: Mapping[str, str]) -> float | None:
    """Memory of one GPU, where the catalogue tells; it tells two cards of one name apart."""
    if row.get("gpu_memory"):
        return float(row["gpu_memory"])
    found = re.search(r"'SizeInMiB': (\d+)", row.get("GpuInfo") or "")
    return int(found.group(1)) / 1024 if found else None


def _gpu(name: str, memory_gb: float | None) -> Gpu | None:
    names = [name] if memory_gb is None else [f"{name}-{memory_gb:.0f}GB", name]
    for one in names:
        try:
            found = gpu(one)
        except ServingError:
            continue
        if memory_gb is None or abs(memory_gb / found.memory_gb - 1) < 0.1:
            return found
    return None


def _ends(key: tuple[str, str, str], offers: list[Offer], source: str, day: date) -> list[GpuPrice]:
    name, provider, commitment = key
    ends = {offer.usd: offer for offer in (max(offers), min(offers))}
    return [
        GpuPrice.model_validate(
            {
                "gpu": name, "provider": provider, "commitment": commitment, "usd_per_gpu_hour": usd, "source": source,
                "checked": day, "note": ends[usd].where if len(ends) > 1 else "",
            }
        )
        for usd in sorted(ends)
    ]  # fmt: skip
