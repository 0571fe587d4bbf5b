"""GPUs and models as ``pricing/gpus.toml`` and ``pricing/models.toml`` describe them, and number schemes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from pydantic import Field, field_validator

from tenfold.errors import ServingError, near
from tenfold.prices.files import shipped
from tenfold.prices.models import Strict, parse_as
from tenfold.serving import hf_config
from tenfold.serving.model_spec import ModelSpec, Number

GPUS = "gpus.toml"
MODELS = "models.toml"


class Scheme(NamedTuple):
    """How numbers are kept: of weights, or of the KV cache.

    Args:
        name: Name on the command line.
        bits: Bits a number takes in memory, scales and zero points included.
        compute: Precision in which a GPU multiplies it.
        source: Where the bits come from.
    """

    name: str
    bits: Fraction
    compute: Literal["bf16", "fp8", "int8", "fp4"]
    source: str

    @property
    def bytes(self) -> Fraction:
        """Bytes that a number takes."""
        return self.bits / 8


# AWQ and GPTQ with groups of 128 keep a 16-bit scale and zero point a group, and embeddings and head in 16 bits: 4.5
# bits a weight in practice; NVFP4 one FP8 scale per 16 numbers. (serving.md 2: ridgepoint 0.1.2, vLLM perf.py)
WEIGHTS: Mapping[str, Scheme] = {
    one.name: one
    for one in (
        Scheme("bf16", Fraction(16), "bf16", "bfloat16"),
        Scheme("fp16", Fraction(16), "bf16", "float16"),
        Scheme("fp8", Fraction(8), "fp8", "8-bit floats, scales per tensor or block (under 0.1 bits)"),
        Scheme("int8", Fraction(8), "int8", "8-bit integers, a scale per channel (under 0.1 bits)"),
        Scheme("int4", Fraction(9, 2), "bf16", "AWQ or GPTQ, groups of 128, 16-bit embeddings: 4.5 bits"),
        Scheme("fp4", Fraction(9, 2), "fp4", "NVFP4, an 8-bit scale per 16 numbers: 4.5 bits"),
    )
}
KV: Mapping[str, Scheme] = {
    one.name: one
    for one in (
        Scheme("bf16", Fraction(16), "bf16", "bfloat16"),
        Scheme("fp16", Fraction(16), "bf16", "float16"),
        Scheme("fp8", Fraction(8), "fp8", "8-bit floats"),
        Scheme("int8", Fraction(8), "int8", "8-bit integers"),
        Scheme("int4", Fraction(17, 4), "bf16", "4-bit integers, 16-bit scale and zero point a head of 128: 4.25 bits"),
        Scheme("fp4", Fraction(9, 2), "fp4", "NVFP4, an 8-bit scale per 16 numbers: 4.5 bits"),
    )
}


class Gpu(Strict):
    """One ``[[gpu]]`` table. ``tflops`` by precision, dense; a precision that is absent is not supported."""

    name: str = Field(min_length=1)
    aliases: list[str] = Field(default=[])
    vendor: Literal["nvidia", "amd"]
    memory_gb: Number = Field(gt=0)
    bandwidth_gb_per_s: Number = Field(gt=0)
    tflops: dict[Literal["bf16", "fp8", "int8", "fp4"], Number]
    link_gb_per_s: Number = Field(gt=0)
    source: str = Field(min_length=1)
    checked: date
    note: str = ""

    @field_validator("tflops")
    @classmethod
    def _has_16_bits(cls, value: dict[str, float]) -> dict[str, float]:
        if "bf16" not in value or min(value.values()) <= 0:
            raise ValueError("needs a rate for bf16, to which others are unpacked, and none of 0")
        return value

    @property
    def memory_bytes(self) -> float:
        """Bytes of memory (decimal gigabytes, as vendors count)."""
        return self.memory_gb * 1e9

    @property
    def bandwidth(self) -> float:
        """Bytes a second between memory and cores."""
        return self.bandwidth_gb_per_s * 1e9

    def flops(self, precision: Literal["bf16", "fp8", "int8", "fp4"]) -> float:
        """Give the dense rate of a precision; where the GPU has none, of bf16, to which weights are unpacked.

        Args:
            precision: ``bf16``, ``fp8``, ``int8`` or ``fp4``.

        Returns:
            Operations a second.
        """
        # FP4 weights on a GPU without FP4 units are multiplied in FP8 at best; engines take 16 bits
        return self.tflops.get(precision, self.tflops["bf16"]) * 1e12


class _Gpus(Strict):
    gpu: list[Gpu]


class _Models(Strict):
    model: list[ModelSpec]


def gpu(name: str) -> Gpu:
    """Find a GPU.

    Args:
        name: Name or alias, in any case; or the path of a TOML file with one ``[[gpu]]`` table of one's own.

    Returns:
        Its data.

    Raises:
        ServingError: It is not in ``pricing/gpus.toml``, or the file cannot be read.
        PriceFileError: The file's table cannot be used; names the key.
    """
    if name.endswith(".toml"):
        return _only(parse_as(name, _own(name), _Gpus, {"gpu": Gpu}).gpu, name)
    return _found(name, _gpus(), "GPU", GPUS)


def model(name: str) -> ModelSpec:
    """Find a model.

    Args:
        name: Hugging Face id, short name or alias, in any case; or the path of a ``config.json``, of its folder, or of
            a TOML file with one ``[[model]]`` table of one's own.

    Returns:
        Its dimensions.

    Raises:
        ServingError: It is not in ``pricing/models.toml``, or the config cannot be used.
        PriceFileError: The file's table cannot be used; names the key.
    """
    if name.endswith(".toml"):
        return _only(parse_as(name, _own(name), _Models, {"model": ModelSpec}).model, name)
    if name.endswith(".json") or (name.strip().lower() not in _models() and (Path(name) / "config.json").is_file()):
        return hf_config.read(Path(name))
    return _found(name, _models(), "model", MODELS)


def scheme(name: str, known: Mapping[str, Scheme], what: str) -> Scheme:
    """Find a number scheme.

    Args:
        name: Its name.
        known: ``WEIGHTS`` or ``KV``.
        what: What it is for, for the error.

    Returns:
        The scheme.

    Raises:
        ServingError: There is none of that name.
    """
    if name.lower() not in known:
        raise ServingError(f'{what} "{name}" is not known.{near(name, known)} Known: {", ".join(known)}')
    return known[name.lower()]


_Spec = TypeVar("_Spec", Gpu, ModelSpec)
_OWN = {GPUS: "TOML file with a [[gpu]] table", MODELS: "config.json, or of a TOML file with a [[model]] table,"}


def _own(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ServingError(f"{path}: cannot be read: {error.strerror}") from error


def _only(specs: Sequence[_Spec], path: str) -> _Spec:
    if len(specs) != 1:
        raise ServingError(f"{path}: holds {len(specs)} tables; one is wanted")
    return specs[0]


def _found(name: str, known: Mapping[str, _Spec], what: str, file: str) -> _Spec:
    found = known.get(name.strip().lower())
    if found is None:
        raise ServingError(
            f'{what} "{name}" is not in pricing/{file}.{near(name.lower(), known)} Give the path of a '
            f"{_OWN[file]} that describes it"
        )
    return found


def _by_name(specs: Iterable[_Spec], file: str) -> dict[str, _Spec]:
    found: dict[str, _Spec] = {}
    for spec in specs:
        # a model is known without its organisation too
        for name in dict.fromkeys((spec.name, spec.name.rpartition("/")[2], *spec.aliases)):
            if name.lower() in found:
                raise ServingError(f'pricing/{file}: two entries are called "{name}"')
            found[name.lower()] = spec
    return found


@cache
def _gpus() -> dict[str, Gpu]:
    return _by_name(parse_as(GPUS, (shipped() / GPUS).read_bytes(), _Gpus, {"gpu": Gpu}).gpu, GPUS)


@cache
def _models() -> dict[str, ModelSpec]:
    return _by_name(parse_as(MODELS, (shipped() / MODELS).read_bytes(), _Models, {"model": ModelSpec}).model, MODELS)
