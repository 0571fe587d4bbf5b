"""What the serving commands share: options that describe a replica, and the replica they describe."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.serving import calibration
from tenfold.serving.calibration import Calibration
from tenfold.serving.gpu_prices import gpu_price
from tenfold.serving.memory import MOST_TP, Deployment, deployment


def finite(param: typer.CallbackParam, value: float | None) -> float | None:
    """Refuse infinity and NaN, which an option of a number would take: the callback of each such option.

    Args:
        param: The option.
        value: What it was given.

    Returns:
        The value.

    Raises:
        AssumptionError: It is not finite.
    """
    if value is not None and not math.isfinite(value):
        raise AssumptionError(f"{param.opts[0]} {value:g}: write a finite number")
    return value


Model = Annotated[
    str,
    typer.Option("--model", metavar="M", help="Hugging Face id, short name or config.json.", show_default=False),
]
Gpu = Annotated[
    str, typer.Option("--gpu", metavar="G", help="GPU, such as h100-sxm, or TOML file of one.", show_default=False)
]
Tp = Annotated[
    int, typer.Option("--tp", metavar="N", min=1, max=MOST_TP, help="GPUs that share one copy of the model.")
]
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
    float | None,
    typer.Option(
        "--ttft-slo-ms", metavar="X", callback=finite, help="Bound of time to first token.", show_default=False
    ),
]
TpotSloMs = Annotated[
    float | None,
    typer.Option(
        "--tpot-slo-ms", metavar="X", callback=finite, help="Bound of time per output token.", show_default=False
    ),
]

Calibrate = Annotated[
    Path | None,
    typer.Option(
        "--calibrate",
        metavar="FILE",
        help="Measurement of this replica: result file of vLLM, SGLang, aiperf or InferenceX, or one's own JSON. Facts "
        "it does not hold are taken from --concurrency, --isl and --osl, where the command has them.",
    ),
]
Engine = Annotated[
    str | None, typer.Option("--engine", metavar="E", help="With --calibrate: only this engine's points.")
]


class HourlyPrice(NamedTuple):
    """What a GPU costs an hour.

    Args:
        usd: Price of one GPU for one hour; None where nothing says.
        source: Where it comes from, or why there is none.
    """

    usd: Decimal | None
    source: str


def hourly_price(gpu: str, given: str | None) -> HourlyPrice:
    """Take the price stated, else the median of the lists: one rule for all commands.

    Args:
        gpu: GPU name.
        given: What ``--usd-per-gpu-hour`` says, or None.

    Returns:
        The price.

    Raises:
        AssumptionError: What is given is no price.
    """
    if given is not None:
        return HourlyPrice(hourly_usd(given), "as given")
    try:
        found = gpu_price(gpu)
    except NotEvaluable as error:
        return HourlyPrice(None, str(error))
    return HourlyPrice(found.median, f"{found}; --usd-per-gpu-hour states your own")


def calibrated(
    one: Deployment,
    file: Path | None,
    engine: str | None = None,
    *,
    concurrency: int | None = None,
    isl: int | None = None,
    osl: int | None = None,
) -> Calibration | None:
    """Read the measurement that the options name.

    Args:
        one: The replica.
        file: The file, or None.
        engine: Only this engine's points.
        concurrency: Fact that the file may not hold: requests under way at once.
        isl: Likewise: tokens of a prompt.
        osl: Likewise: tokens of an answer.

    Returns:
        The calibration, or None without a file.

    Raises:
        AssumptionError: There is an engine and no file.
        ServingError: The file cannot be used.
    """
    if file is None:
        if engine is not None:
            raise AssumptionError("--engine chooses points of a measurement: it needs --calibrate FILE")
        return None
    return calibration.calibrate(one, calibration.read(file, calibration.Given(concurrency, isl, osl, engine)))


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
