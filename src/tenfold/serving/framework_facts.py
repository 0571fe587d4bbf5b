"""Serving engines as ``pricing/frameworks.toml`` describes them: status with source and date, hardware, reasons."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from tenfold.errors import AssumptionError, ServingError, near
from tenfold.prices.files import shipped
from tenfold.prices.models import Strict, parse_as
from tenfold.serving import specs

FRAMEWORKS = "frameworks.toml"
Text = Annotated[str, Field(min_length=1)]
# What --hardware may say beside the names of GPUs, and how it is written.
HARDWARE = {
    "nvidia": "NVIDIA",
    "amd": "AMD",
    "intel": "Intel",
    "tpu": "TPU",
    "gaudi": "Gaudi",
    "ascend": "Ascend",
    "apple": "Apple",
    "cpu": "CPU",
    "edge": "edge devices",
    "own": "hardware of your own",
}


class Framework(Strict):
    """One ``[[framework]]`` table."""

    name: Text
    label: Text
    role: Literal["engine", "orchestration", "custom"]
    licence: str
    version: str
    released: str
    status: Literal["active", "maintenance", "archived", "none"]
    status_since: date | None = None
    status_note: str = ""
    hardware: list[Text]
    base: int = Field(ge=0, le=100)
    strengths: list[Text]
    weaknesses: list[Text]
    serve: str
    source: Text
    checked: date

    @property
    def standing(self) -> str:
        """Its status in words, with version and dates."""
        parts = [f"{self.status}{f' since {self.status_since}' if self.status_since else ''}"]
        if self.version:
            parts.append(f"{self.version}{f' ({self.released})' if self.released else ''}")
        parts += [note for note in (self.licence, self.status_note) if note]
        return ", ".join(parts)


class Benchmark(Strict):
    """One ``[[benchmark]]`` table: what somebody else measured, to be shown and not counted."""

    what: Text
    who: Text
    date: Text
    source: Text


class _File(Strict):
    framework: list[Framework]
    benchmark: list[Benchmark]


class Frameworks(NamedTuple):
    """The table.

    Args:
        all: By name.
        benchmarks: What others measured.
    """

    all: dict[str, Framework]
    benchmarks: tuple[Benchmark, ...]


@cache
def frameworks() -> Frameworks:
    """Read the table of engines.

    Returns:
        Frameworks by name, and other people's benchmarks.

    Raises:
        ServingError: Two entries have one name, or hardware is not known.
    """
    read = parse_as(
        FRAMEWORKS,
        (shipped() / FRAMEWORKS).read_bytes(),
        _File,
        {"framework": Framework, "benchmark": Benchmark},
    )
    found: dict[str, Framework] = {}
    for one in read.framework:
        if one.name in found:
            raise ServingError(f'pricing/{FRAMEWORKS}: two entries are called "{one.name}"')
        for word in one.hardware:
            if word not in HARDWARE:
                raise ServingError(f'pricing/{FRAMEWORKS}, {one.name}: hardware "{word}".{near(word, HARDWARE)}')
        found[one.name] = one
    return Frameworks(found, tuple(read.benchmark))


def kind_of(hardware: str) -> str:
    """Find what kind of hardware a word or a GPU's name means.

    Args:
        hardware: A word of ``HARDWARE``, or a GPU of ``pricing/gpus.toml``.

    Returns:
        The word.

    Raises:
        AssumptionError: It is neither.
    """
    word = hardware.strip().lower()
    if word in HARDWARE:
        return word
    try:
        return specs.gpu(word).vendor
    except ServingError as error:
        raise AssumptionError(
            f'--hardware "{hardware}" is neither a GPU in pricing/gpus.toml nor one of {", ".join(HARDWARE)}'
            f"{near(word, HARDWARE)} (own: what no engine supports)"
        ) from error
