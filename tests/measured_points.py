"""Measured points of serving: aiconfigurator's end-to-end ones, and the published ones of serving_points.csv.

Read for the tests of the roofline and by benchmarks/roofline.py, which fits its constants to the first.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from real_data import DATA

from tenfold.serving import roofline, specs
from tenfold.serving.memory import Deployment

SILICON = Path(__file__).parent / "serving" / "silicon.csv"
SILICON_MOE = SILICON.with_name("silicon_moe.csv")
PUBLISHED = DATA / "serving" / "serving_points.csv"


class Measured(NamedTuple):
    """One measured point; rates in output tokens a second and GPU."""

    name: str
    model: str
    gpu: str
    backend: str
    quality: str
    deployment: Deployment
    concurrency: float
    input_tokens: float
    output_tokens: float
    ttft_s: float
    tpot_s: float
    rate: float

    @property
    def scheme(self) -> str:
        return self.deployment.weights.name

    @property
    def tp(self) -> int:
        return self.deployment.tp

    @property
    def batch(self) -> float:
        return roofline.in_memory(self.deployment, self.concurrency, self.input_tokens, self.output_tokens)

    def predicted(self, constants: roofline.Constants = roofline.FITTED) -> roofline.Speed:
        return roofline.speed(self.deployment, self.batch, self.input_tokens, self.output_tokens, constants)

    def ratio(self, constants: roofline.Constants = roofline.FITTED) -> float:
        """Predicted over measured rate."""
        return self.predicted(constants).tokens_per_s_per_gpu / self.rate


def kv_of(backend: str, weights: str) -> str:
    # ModelOpt's FP8 and FP4 checkpoints, which TensorRT-LLM's tables name, keep the KV cache in FP8; vLLM and SGLang
    # keep it in 16 bits unless told otherwise
    return "fp8" if backend in {"trtllm", "TensorRT-LLM"} and weights in {"fp8", "fp4"} else "bf16"


@cache
def silicon(path: Path = SILICON) -> tuple[Measured, ...]:
    """The points of tests/serving/silicon.csv, or of silicon_moe.csv."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(_silicon(csv.DictReader(file)))


def _silicon(rows: Iterable[dict[str, str]]) -> Iterator[Measured]:
    for line, row in enumerate(rows, 2):
        kv = specs.KV[kv_of(row["backend"], row["weights"])]
        one = Deployment(
            specs.model(row["model"]), specs.gpu(row["gpu"]), int(row["tp"]), specs.WEIGHTS[row["weights"]], kv
        )
        held, given, made = (float(row[key]) for key in ("concurrency", "input_tokens", "output_tokens"))
        ttft, tpot = float(row["ttft_ms"]) / 1e3, float(row["tpot_ms"]) / 1e3
        rate = held * made / (ttft + tpot * (made - 1)) / one.tp
        yield Measured(
            f"line {line}", row["model"], row["gpu"], row["backend"], "A", one, held, given, made, ttft, tpot, rate
        )


def splits(points: Iterable[Measured]) -> Iterator[tuple[str, Callable[[Measured], bool]]]:
    """Each way of leaving one GPU, model or backend out: its name, and whether a point is left out."""
    for key in ("gpu", "model", "backend"):
        for value in sorted({getattr(point, key) for point in points}):
            yield f"{key} {value}", lambda point, key=key, value=value: getattr(point, key) == value


def fit(points: Iterable[Measured]) -> roofline.Constants:
    """Fit the constants: log least squares of the rate, soft-L1, with e_m and t0 held (see ``roofline.FITTED``)."""
    import numpy as np
    from scipy.optimize import least_squares

    scale = np.array([0.5, 50e-6, 5e-6, 1e-6])
    each = [(point, point.batch) for point in points]

    def constants(at: np.ndarray) -> roofline.Constants:
        compute, layer, allreduce, sequence = (at * scale).tolist()
        return roofline.Constants(0.9, compute, 0.0, layer, allreduce, sequence)

    def off(at: np.ndarray) -> np.ndarray:
        tried = constants(at)
        return np.log(
            [
                roofline.speed(one.deployment, batch, one.input_tokens, one.output_tokens, tried).tokens_per_s_per_gpu
                / one.rate
                for one, batch in each
            ]
        )

    bounds = (np.array([0.2, 0, 0, 0]) / scale, np.array([0.95, 200e-6, 50e-6, 20e-6]) / scale)
    found = least_squares(off, np.ones(4), bounds=bounds, loss="soft_l1", f_scale=0.1, xtol=1e-4, ftol=1e-5)
    return constants(found.x)


# How serving_points.csv spells number schemes; others (GGUF, mixed cells) have no counterpart here
_WEIGHTS = {"bf16(default)": "bf16", "nvfp4": "fp4", "awq-marlin-int4": "int4", "awq-int4 (non-Marlin, eager)": "int4"}


def published_rows() -> list[dict[str, str]]:
    """The rows of serving_points.csv."""
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def length(text: str) -> float | None:
    """Tokens of a length column: ``1000``, ``~778`` (a mean); nothing for bounds (``<=256``) and names of data sets."""
    text = text.removeprefix("~").removesuffix("?")
    return float(text) if text.replace(".", "", 1).isdigit() else None


def deployment_of(row: dict[str, str]) -> Deployment | None:
    """The deployment that a row of serving_points.csv measured; None for schemes that have no counterpart here."""
    weights = _WEIGHTS.get(row["weights"], row["weights"])
    if weights not in specs.WEIGHTS:
        return None
    kv = "fp8" if row["kv"].startswith("fp8") else kv_of(row["engine"], weights)
    # TP2, or data and expert parallel over as many (DEP4)
    tp = int(row["parallel"].lstrip("TPDE") or 1)
    return Deployment(specs.model(row["model"]), specs.gpu(row["hardware"]), tp, specs.WEIGHTS[weights], specs.KV[kv])


def measured(row: dict[str, str]) -> Measured | None:
    """The point of a row of serving_points.csv; None where it misses lengths, a rate a GPU or a known scheme.

    Without a concurrency as many requests as fit are taken.
    """
    given, made, rate = length(row["isl"]), length(row["osl"]), row["out_tok_s_per_gpu"]
    one = deployment_of(row)
    if given is None or made is None or not rate or one is None:
        return None
    ttft, tpot = (float(row[key] or "nan") / 1e3 for key in ("ttft_ms", "tpot_ms"))
    what = (one.model.name, one.gpu.name, row["engine"], row["quality"])
    return Measured(row["id"], *what, one, float(row["concurrency"] or "inf"), given, made, ttft, tpot, float(rate))


def published(wanted: Callable[[dict[str, str]], bool]) -> list[Measured]:
    """The points of the rows of serving_points.csv that are wanted and state what a point needs."""
    return [point for row in published_rows() if wanted(row) and (point := measured(row)) is not None]
