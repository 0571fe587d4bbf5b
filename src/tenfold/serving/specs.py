"""GPUs and models as ``pricing/gpus.toml`` and ``pricing/models.toml`` describe them, and number schemes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import BeforeValidator, Field

from tenfold.errors import ServingError, near
from tenfold.prices.files import shipped
from tenfold.prices.models import Strict, parse_as

GPUS = "gpus.toml"
MODELS = "models.toml"


def _number(value: object) -> object:
    # TOML is read with exact decimals; sizes and speeds are no money
    return float(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_number)]


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
    tflops: dict[str, Number]
    link_gb_per_s: Number = Field(gt=0)
    source: str = Field(min_length=1)
    checked: date
    note: str = ""

    @property
    def memory_bytes(self) -> float:
        """Bytes of memory (decimal gigabytes, as vendors count)."""
        return self.memory_gb * 1e9

    @property
    def bandwidth(self) -> float:
        """Bytes a second between memory and cores."""
        return self.bandwidth_gb_per_s * 1e9

    def flops(self, precision: str) -> float:
        """Give the dense rate of a precision; where the GPU has none, of bf16, to which weights are unpacked.

        Args:
            precision: ``bf16``, ``fp8``, ``int8`` or ``fp4``.

        Returns:
            Operations a second.
        """
        # FP4 weights on a GPU without FP4 units are multiplied in FP8 at best; engines take 16 bits
        return self.tflops.get(precision, self.tflops["bf16"]) * 1e12


class Layers(Strict):
    """A group of alike layers: how many, and how far back they attend (0: to the start)."""

    count: int = Field(gt=0)
    window: int = Field(default=0, ge=0)
    kind: Literal["full", "sliding", "linear"] = "full"


class ModelSpec(Strict):
    """One ``[[model]]`` table: what memory and time follow from."""

    name: str = Field(min_length=1)
    aliases: list[str] = Field(default=[])
    params: Number = Field(gt=0)
    active_params: Number | None = Field(default=None, gt=0)
    layers: list[Layers]
    hidden: int = Field(gt=0)
    q_heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    kv_latent: int = Field(default=0, ge=0)
    """MLA: numbers kept a token and layer (latent and rotary part) in place of keys and values."""
    experts: int = Field(default=0, ge=0)
    experts_per_token: int = Field(default=0, ge=0)
    expert_params: Number = Field(default=0, ge=0)
    """Parameters in routed experts, all of them together."""
    max_context: int = Field(default=0, ge=0)
    source: str = Field(min_length=1)
    checked: date
    note: str = ""

    @property
    def layer_count(self) -> int:
        """Layers of every kind."""
        return sum(one.count for one in self.layers)

    @property
    def active(self) -> float:
        """Parameters that one token is multiplied with."""
        return self.active_params or self.params

    @property
    def is_moe(self) -> bool:
        """Whether a token is multiplied with a part of the parameters only."""
        return self.experts > 0


class _Gpus(Strict):
    gpu: list[Gpu]


class _Models(Strict):
    model: list[ModelSpec]


def gpu(name: str) -> Gpu:
    """Find a GPU.

    Args:
        name: Name or alias, in any case.

    Returns:
        Its data.

    Raises:
        ServingError: It is not in ``pricing/gpus.toml``.
    """
    return _found(name, _gpus(), "GPU", GPUS)


def model(name: str) -> ModelSpec:
    """Find a model.

    Args:
        name: Hugging Face id, short name or alias, in any case.

    Returns:
        Its dimensions.

    Raises:
        ServingError: It is not in ``pricing/models.toml``.
    """
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
        raise ServingError(f'{what} "{name}" is not known{near(name, known)}. Known: {", ".join(known)}')
    return known[name.lower()]


_Spec = TypeVar("_Spec", Gpu, ModelSpec)


def _found(name: str, known: Mapping[str, _Spec], what: str, file: str) -> _Spec:
    found = known.get(name.strip().lower())
    if found is None:
        raise ServingError(
            f'{what} "{name}" is not in pricing/{file}{near(name.lower(), known)}. Add an entry there, with its source'
        )
    return found


def _by_name(specs: Iterable[_Spec], file: str) -> dict[str, _Spec]:
    found: dict[str, _Spec] = {}
    for spec in specs:
        for name in (spec.name, *spec.aliases):
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
