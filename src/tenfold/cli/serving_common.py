"""What the serving commands share: options that describe a replica, and the replica they describe."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer

from tenfold.errors import AssumptionError
from tenfold.serving.memory import Deployment, deployment

Model = Annotated[
    str,
    typer.Option("--model", metavar="M", help="Hugging Face id, short name or config.json.", show_default=False),
]
Gpu = Annotated[
    str, typer.Option("--gpu", metavar="G", help="GPU, such as h100-sxm, or TOML file of one.", show_default=False)
]
Tp = Annotated[int, typer.Option("--tp", metavar="N", min=1, help="GPUs that share one copy of the model.")]
Weights = Annotated[
    str, typer.Option("--weights", metavar="W", help="Numbers of the weights: bf16, fp16, fp8, int8, int4 or fp4.")
]
Kv = Annotated[
    str, typer.Option("--kv", metavar="K", help="Numbers of the KV cache: bf16, fp16, fp8, int8, int4 or fp4.")
]
Isl = Annotated[int, typer.Option("--isl", metavar="I", min=1, help="Tokens of a prompt.", show_default=False)]
Osl = Annotated[int, typer.Option("--osl", metavar="O", min=1, help="Tokens of an answer.", show_default=False)]
UsdPerGpuHour = Annotated[
    str | None, typer.Option("--usd-per-gpu-hour", metavar="X", help="Price of one GPU for one hour, in USD.")
]
TtftSloMs = Annotated[
    float | None, typer.Option("--ttft-slo-ms", metavar="X", help="Bound of time to first token.", show_default=False)
]
TpotSloMs = Annotated[
    float | None, typer.Option("--tpot-slo-ms", metavar="X", help="Bound of time per output token.", show_default=False)
]


def replica(model: str, gpu: str, tp: int, weights: str, kv: str) -> Deployment:
    """Make the replica that the options describe.

    Args:
        model: Model id, short name, or path of a ``config.json``.
        gpu: GPU name.
        tp: GPUs of one copy.
        weights: Scheme of the weights.
        kv: Scheme of the KV cache.

    Returns:
        The replica.

    Raises:
        ServingError: A name is not known.
    """
    return deployment(model, gpu, tp, weights, kv)


def hourly_usd(text: str, option: str = "--usd-per-gpu-hour") -> Decimal:
    """Read a price for an hour.

    Args:
        text: What the user wrote.
        option: Option to name in the error.

    Returns:
        USD, above zero.

    Raises:
        AssumptionError: It is no such number.
    """
    try:
        price = Decimal(text)
    except InvalidOperation as error:
        raise AssumptionError(f'{option} "{text}": write a number of USD such as 2.95') from error
    if not price.is_finite() or not 0 < price < 10**6:
        raise AssumptionError(f"{option} {text}: write a price above 0 USD an hour, such as 2.95")
    return price


def seconds(milliseconds: float | None, option: str) -> float | None:
    """Read a limit in milliseconds.

    Args:
        milliseconds: The option's value.
        option: Option to name in the error.

    Returns:
        Seconds, or None where there is no limit.

    Raises:
        AssumptionError: It is not above zero.
    """
    if milliseconds is None:
        return None
    if not 0 < milliseconds < math.inf:
        raise AssumptionError(f"{option} {milliseconds:g}: write milliseconds above zero")
    return milliseconds / 1e3
