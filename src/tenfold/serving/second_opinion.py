"""Two estimates of one replica side by side: tenfold's roofline, and NVIDIA's aiconfigurator where it is installed."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, NamedTuple, Protocol, cast

from tenfold import extras
from tenfold.errors import ServingError
from tenfold.serving import roofline
from tenfold.serving.memory import Deployment
from tenfold.serving.specs import Gpu, ModelSpec

VENDOR = "vendor model"

# Names of number schemes there; others have no counterpart
_WEIGHTS: Mapping[str, str] = {
    "bf16": "bfloat16",
    "fp16": "bfloat16",
    "fp8": "fp8",
    "int8": "int8_wo",
    "int4": "int4_wo",
    "fp4": "nvfp4",
}
_KV: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "bfloat16", "fp8": "fp8", "int8": "int8"}


class Load(NamedTuple):
    """A steady load.

    Args:
        concurrency: Requests under way at once.
        input_tokens: Tokens of a prompt.
        output_tokens: Tokens of an answer.
    """

    concurrency: int
    input_tokens: int
    output_tokens: int


class Estimate(NamedTuple):
    """What an estimator says.

    Args:
        ttft_s: Seconds to the first token.
        tpot_s: Seconds an output token.
        tokens_per_s_per_gpu: Output tokens a second and GPU.
        label: Who says so.
    """

    ttft_s: float
    tpot_s: float
    tokens_per_s_per_gpu: float
    label: str


class Estimator(Protocol):
    """Anything that estimates the speed of a replica."""

    def estimate(self, deployment: Deployment, load: Load) -> Estimate:
        """Estimate a replica under a load.

        Args:
            deployment: The replica.
            load: The load.

        Returns:
            The estimate.

        Raises:
            ServingError: The estimator cannot say.
        """
        ...


class Roofline(NamedTuple):
    """tenfold's own estimate.

    Args:
        scale: Measured over predicted rate (``calibration.Calibration.scale``).
    """

    scale: float = 1.0

    def estimate(self, deployment: Deployment, load: Load) -> Estimate:
        """Estimate by ``roofline.speed``; of requests that do not fit in memory only those that do are decoded.

        Args:
            deployment: The replica.
            load: The load.

        Returns:
            The estimate.
        """
        batch = roofline.in_memory(deployment, *load)
        speed = roofline.speed(deployment, batch, load.input_tokens, load.output_tokens, scale=self.scale)
        return Estimate(speed.ttft_s, speed.tpot_s, speed.tokens_per_s_per_gpu, "roofline")


class Aiconfigurator(NamedTuple):
    """NVIDIA's aiconfigurator: tables of measured kernels, interpolated (extra ``aic``; Linux x86-64, no network).

    It was 14 % off the measured points of its own package in the median, its time to the first token 46 %, so it is a
    second opinion and never the only one. (serving.md 1)

    Args:
        backend: Engine whose tables are taken: ``vllm``, ``sglang`` or ``trtllm``.
    """

    backend: str = "vllm"

    def estimate(self, deployment: Deployment, load: Load) -> Estimate:
        """Estimate by ``cli_estimate``, aggregated serving.

        Args:
            deployment: The replica.
            load: The load.

        Returns:
            The estimate, labelled as the vendor's.

        Raises:
            MissingExtraError: The package is not installed.
            ServingError: It does not know the model, GPU or number scheme, or the load does not fit.
        """
        extras.need("aiconfigurator", "aiconfigurator_core", what="The second opinion", extra="aic")
        from aiconfigurator.cli import api  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

        arguments = {
            "backend_name": self.backend,
            "isl": load.input_tokens,
            "osl": load.output_tokens,
            "batch_size": load.concurrency,
            "tp_size": deployment.tp,
            "gemm_quant_mode": _named(_WEIGHTS, deployment.weights.name, "weights"),
            "kvcache_quant_mode": _named(_KV, deployment.kv.name, "a KV cache"),
        }
        model, system = _model(deployment.model), _system(deployment.gpu)
        with _quiet():
            try:
                found = cast("Any", api).cli_estimate(model, system, **arguments)
            except (RuntimeError, ValueError, KeyError) as error:
                raise ServingError(f"aiconfigurator gives no second opinion: {error}") from error
        return Estimate(
            float(found.ttft) / 1e3,
            float(found.tpot) / 1e3,
            float(found.raw["tokens/s/gpu"]),
            f"{VENDOR} (aiconfigurator, {self.backend})",
        )


def _named(names: Mapping[str, str], name: str, what: str) -> str:
    if name not in names:
        raise ServingError(f"aiconfigurator gives no second opinion on {what} in {name}. It knows {', '.join(names)}")
    return names[name]


def _model(spec: ModelSpec) -> str:
    # it would look for any other model on the network
    held = {one.name for one in (files("aiconfigurator_core") / "model_configs").iterdir()}
    found = next(
        (name for name in (spec.name, *spec.aliases) if f"{name.replace('/', '--')}_config.json" in held), None
    )
    if found is None:
        raise ServingError(f"aiconfigurator gives no second opinion on {spec.name}: its package has no config of it")
    return found


def _system(gpu: Gpu) -> str:
    held = {one.name for one in (files("aiconfigurator_core") / "systems").iterdir()}
    found = next((name for name in (gpu.name, *gpu.aliases) if f"{name}.yaml" in held), None)
    if found is None:
        raise ServingError(f"aiconfigurator gives no second opinion on {gpu.name}: its package has no tables of it")
    return found


@contextmanager
def _quiet() -> Generator[None]:
    # it warns of every table that it interpolates
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
