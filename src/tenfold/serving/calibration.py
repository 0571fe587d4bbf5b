"""Scaling the roofline by what was measured: one point, or the result file of a benchmark client."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

from tenfold.errors import ServingError
from tenfold.serving import physics, roofline, specs
from tenfold.serving.memory import Deployment

Row = Mapping[str, Any]

# Below this many rounds of the concurrency, filling and emptying the batch is a good part of the run
_ROUNDS = 4


class Point(NamedTuple):
    """One measurement of one replica under a steady load.

    Args:
        concurrency: Requests under way at once; infinity for more than fit.
        input_tokens: Mean tokens of a prompt that were computed.
        output_tokens: Mean tokens of an answer.
        tokens_per_s: Output tokens a second of the replica; None where only ``tpot_s`` is known.
        tpot_s: Mean or median seconds an output token.
        ttft_s: Mean or median seconds to the first token.
        source: Where it comes from.
        engine: What was measured, where the file says.
        model: Which model, where the file says.
        requests: How many requests it rests on; 0 where not known.
    """

    concurrency: float
    input_tokens: float
    output_tokens: float
    tokens_per_s: float | None = None
    tpot_s: float | None = None
    ttft_s: float | None = None
    source: str = "given"
    engine: str = ""
    model: str = ""
    requests: float = 0


class Given(NamedTuple):
    """Facts that some files do not hold; what a file does hold goes before.

    Args:
        concurrency: Requests under way at once.
        input_tokens: Mean tokens of a prompt.
        output_tokens: Mean tokens of an answer.
        engine: Only points of this engine, of a file that holds several.
    """

    concurrency: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    engine: str | None = None


class Calibration(NamedTuple):
    """What was measured over what the roofline predicts, for one replica.

    Args:
        scale: Measured over predicted rate, the median of the points' (in logarithms); ``roofline.step_cost`` and
            ``roofline.speed`` take it.
        points: The points.
        ratios: Each point's own measured over predicted rate, in order.
        source: Where the points come from.
        notes: What to know of them.
    """

    scale: float
    points: tuple[Point, ...]
    ratios: tuple[float, ...]
    source: str
    notes: tuple[str, ...] = ()

    def ttft_text(self, batch: int | None = None) -> str:
        """Say the measured times to the first token.

        Args:
            batch: Only that of the load nearest to so many requests under way; None for the range.

        Returns:
            Text such as ``measured was 123 ms at concurrency 4``.
        """
        found = [(point.concurrency, point.ttft_s) for point in self.points if point.ttft_s is not None]
        if not found:
            return "the measurement has none"
        if batch is not None:
            found = [min(found, key=lambda one: abs(math.log(one[0] / batch)))]
        (least, first), (most, last) = min(found), max(found)
        more = f" to {last * 1e3:,.0f} ms at {most:g}" if len(found) > 1 else ""
        return f"measured was {first * 1e3:,.0f} ms at concurrency {least:g}{more}"

    @property
    def said_of_ttft(self) -> str:
        """What a predicted time to the first token is worth, beside the measured ones."""
        return (
            "TTFT is modelled from the start of the prefill, so without a queue, and not calibrated by itself (it is "
            f"scaled with the rate); {self.ttft_text()}"
        )


def calibrate(one: Deployment, points: Iterable[Point]) -> Calibration:
    """Scale the roofline of a replica by measurements of it.

    Args:
        one: The replica that was measured.
        points: Measurements, at least one.

    Returns:
        The calibration; points at several loads weigh alike.

    Raises:
        ServingError: There is no point, one is of another model, breaks a physical bound or holds no rate, the points
            are of several engines, or the replica does not hold the model.
    """
    kept = tuple(points)
    if not kept:
        raise ServingError("calibration without a measured point: give one, or a result file of a benchmark")
    engines = sorted({point.engine for point in kept if point.engine})
    if len(engines) > 1:
        raise ServingError(
            f"{kept[0].source.split(', line ')[0]}: points of several engines: choose one with --engine "
            f"({', '.join(engines)})"
        )
    if not one.fits:
        raise ServingError(
            f"{one.model.name} in {one.weights.name} does not fit on {one.tp} x {one.gpu.name}: the measured replica "
            "has more GPUs or smaller weights (--tp, --weights)"
        )
    ratios = tuple(_ratio(one, point) for point in kept)
    scale = math.exp(median(math.log(ratio) for ratio in ratios))
    sources = list(dict.fromkeys(point.source.split(", line ")[0] for point in kept))
    return Calibration(scale, kept, ratios, ", ".join(sources), tuple(_notes(one, kept)))


def read(path: str | Path, given: Given | None = None) -> list[Point]:
    """Read the measured points of a benchmark's result file.

    Args:
        path: JSON or JSON lines of ``vllm bench serve``, ``sglang.bench_serving``, ``sglang.bench_one_batch``, aiperf,
            InferenceX, or one's own (``concurrency``, ``input_tokens``, ``output_tokens`` and ``tokens_per_s`` or
            ``tpot_ms``); summaries with ``throughput_tokens_per_sec``; lines of single requests (``wall_time``,
            ``output_tokens``).
        given: Facts that the file does not hold.

    Returns:
        The points, in the order of the file. (keys: serving.md 5)

    Raises:
        ServingError: The file cannot be read, is of no known form, or misses a key; names file, line and key.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ServingError(f"{file}: cannot be read as a benchmark's result ({error})") from error
    rows, given = _rows(file, text), given or Given()
    if "wall_time" in rows[0][1]:
        return [_requests(rows, file, given)]
    points = [_form(row, place)(row, place, given) for place, row in rows]
    kept = [point for point in points if given.engine is None or point.engine.lower() == given.engine.lower()]
    if not kept:
        held = sorted({point.engine or "(not named)" for point in points})
        raise ServingError(f'{file}: no point of engine "{given.engine}"; it holds {", ".join(held)}')
    return kept


def _ratio(one: Deployment, point: Point) -> float:
    known = _known_model(point.model)
    if known is not None and known.name != one.model.name:
        raise ServingError(f'{point.source}: measures "{point.model}", not {one.model.name}')
    claim = physics.Claim(
        one._replace(kv=specs.KV["fp8"]) if one.kv.bits > specs.KV["fp8"].bits else one,
        point.tokens_per_s,
        point.concurrency if math.isfinite(point.concurrency) else None,
        point.input_tokens,
        point.output_tokens,
        point.ttft_s,
        point.tpot_s,
    )
    broken = physics.check(claim)
    if broken:
        raise ServingError(f"{point.source}: cannot be true of {one.tp} x {one.gpu.name}: {broken[0].why}")
    batch = roofline.in_memory(one, point.concurrency, point.input_tokens, point.output_tokens)
    predicted = roofline.speed(one, batch, point.input_tokens, point.output_tokens)
    if point.tokens_per_s is not None:
        return point.tokens_per_s / (predicted.tokens_per_s_per_gpu * one.tp)
    if point.tpot_s is None:
        raise ServingError(f"{point.source}: holds neither tokens_per_s nor tpot_s")
    return predicted.tpot_s / point.tpot_s


def _known_model(name: str) -> specs.ModelSpec | None:
    try:
        return specs.model(name) if name else None
    except ServingError:
        return None  # a name of one's own (a folder, a served name): nothing to compare


def _notes(one: Deployment, points: Sequence[Point]) -> Iterable[str]:
    for point in points:
        fitting = one.concurrency(point.input_tokens + point.output_tokens / 2)
        if math.isfinite(point.concurrency) and point.concurrency > fitting:
            yield (
                f"{point.source}: {point.concurrency:g} requests under way, of which {max(1.0, fitting):.0f} fit in "
                "memory: the others are taken as queueing"
            )
        if 0 < point.requests < _ROUNDS * point.concurrency and math.isfinite(point.concurrency):
            yield (
                f"{point.source}: {point.requests:g} requests at concurrency {point.concurrency:g}: filling and "
                "emptying the batch lowers the measured rate"
            )


def _rows(file: Path, text: str) -> list[tuple[str, Row]]:
    try:
        found: Any = json.loads(text)
        whole = cast("list[Any]", found) if isinstance(found, list) else [found]
        rows = [(f"{file}" if len(whole) == 1 else f"{file}, entry {at}", row) for at, row in enumerate(whole, 1)]
    except (ValueError, RecursionError):
        rows = [(f"{file}, line {at}", _line(file, at, line)) for at, line in enumerate(text.splitlines(), 1) if line]
    for place, row in rows:
        if not isinstance(row, dict):
            raise ServingError(f"{place}: not a JSON object, as a benchmark's results are")
    if not rows:
        raise ServingError(f"{file}: holds no results")
    return cast("list[tuple[str, Row]]", rows)


def _line(file: Path, at: int, line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ServingError(f"{file}, line {at}: not JSON ({error})") from error


def _number(row: Row, place: str, *keys: str) -> float:
    """The first key that is filled, as a number above zero."""
    found = _optional(row, place, *keys)
    if found is None:
        raise ServingError(f"{place}: needs {' or '.join(keys)}")
    return found


def _optional(row: Row, place: str, *keys: str) -> float | None:
    for key in keys:
        value = row.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
            raise ServingError(f"{place}: {key} is {value!r:.60}, not a number above zero")
        return float(value)
    return None


_OPTIONS = {"concurrency": "--concurrency", "input_tokens": "--isl", "output_tokens": "--osl"}


def _fact(found: float | None, given: float | None, place: str, what: str) -> float:
    fact = found if found is not None else given
    if fact is None:
        raise ServingError(f"{place}: does not say its {what}; give it ({_OPTIONS[what]}, or as that key in the file)")
    return fact


def _milliseconds(row: Row, place: str, *keys: str) -> float | None:
    found = _optional(row, place, *keys)
    return None if found is None else found / 1e3


def _serve(row: Row, place: str, given: Given) -> Point:
    """Serving clients of vLLM and SGLang, and what InferenceX keeps of the former (seconds in place of ms)."""
    completed = _number(row, place, "completed")
    return Point(
        _under_way(row, place, given, completed),
        _number(row, place, "total_input_tokens") / completed,
        _number(row, place, "total_output_tokens") / completed,
        _number(row, place, "output_throughput"),
        _milliseconds(row, place, "mean_tpot_ms", "median_tpot_ms") or _optional(row, place, "median_tpot"),
        _milliseconds(row, place, "mean_ttft_ms", "median_ttft_ms") or _optional(row, place, "median_ttft"),
        place,
        str(row.get("backend") or ""),
        str(row.get("model_id") or ""),
        completed,
    )


def _under_way(row: Row, place: str, given: Given, completed: float) -> float:
    # with a rate, Little's law; without one, all prompts at once or as many as the client keeps under way
    if row.get("request_rate") in {None, "inf", "trace"} or row.get("request_rate") == math.inf:
        return _fact(_optional(row, place, "max_concurrency", "num_prompts"), given.concurrency, place, "concurrency")
    mean_s = _milliseconds(row, place, "mean_e2el_ms", "mean_e2e_latency_ms")
    little = None if mean_s is None else completed * mean_s / _number(row, place, "duration")
    return _fact(_optional(row, place, "concurrency") or little, given.concurrency, place, "concurrency")


def _one_batch(row: Row, place: str, _: Given) -> Point:
    """SGLang's static batch: the decode step alone, without prompts in between."""
    batch, latency = _number(row, place, "batch_size"), _number(row, place, "total_latency")
    made = _number(row, place, "output_len")
    given = _number(row, place, "input_len")
    return Point(batch, given, made, batch * made / latency, source=place, engine="sglang", requests=0)


def _aiperf(row: Row, place: str, given: Given) -> Point:
    load = cast("Row", cast("Row", row.get("input_config") or {}).get("loadgen") or {})
    return Point(
        _fact(
            _optional(load, f"{place}, input_config.loadgen", "concurrency"), given.concurrency, place, "concurrency"
        ),
        _average(row, place, "input_sequence_length"),
        _average(row, place, "output_sequence_length"),
        _average(row, place, "output_token_throughput"),
        _average(row, place, "inter_token_latency") / 1e3 if "inter_token_latency" in row else None,
        _average(row, place, "time_to_first_token") / 1e3 if "time_to_first_token" in row else None,
        place,
        requests=_average(row, place, "request_count") if "request_count" in row else 0,
    )


def _average(row: Row, place: str, key: str) -> float:
    held = row.get(key)
    if not isinstance(held, dict):
        raise ServingError(f"{place}: needs {key}.avg")
    return _number(cast("Row", held), f"{place}, {key}", "avg")


def _summary(row: Row, place: str, given: Given) -> Point:
    return Point(
        _number(row, place, "concurrency"),
        _fact(_optional(row, place, "input_tokens_mean"), given.input_tokens, place, "input_tokens"),
        _number(row, place, "output_tokens_mean"),
        _number(row, place, "throughput_tokens_per_sec"),
        _optional(row, place, "tpot_p50"),
        _optional(row, place, "ttft_p50"),
        place,
        str(row.get("engine") or ""),
        requests=_optional(row, place, "successful_requests") or 0,
    )


def _own(row: Row, place: str, given: Given) -> Point:
    return Point(
        _fact(_optional(row, place, "concurrency"), given.concurrency, place, "concurrency"),
        _fact(_optional(row, place, "input_tokens"), given.input_tokens, place, "input_tokens"),
        _fact(_optional(row, place, "output_tokens"), given.output_tokens, place, "output_tokens"),
        _optional(row, place, "tokens_per_s"),
        _milliseconds(row, place, "tpot_ms"),
        _milliseconds(row, place, "ttft_ms"),
        place,
        str(row.get("engine") or ""),
        str(row.get("model") or ""),
    )


def _requests(rows: Sequence[tuple[str, Row]], file: Path, given: Given) -> Point:
    """Lines of single requests of a closed loop: as many are always under way, so the rate is c x tokens / time."""
    done = [(place, row) for place, row in rows if row.get("success", True)]
    if not done:
        raise ServingError(f"{file}: no request succeeded")
    took = sum(_number(row, place, "wall_time") for place, row in done)
    made = sum(_number(row, place, "output_tokens") for place, row in done)
    held = _fact(None, given.concurrency, str(file), "concurrency")
    tokens = _fact(None, given.input_tokens, str(file), "input_tokens")
    return Point(held, tokens, made / len(done), held * made / took, source=str(file), requests=len(done))


# Which key tells a form, tried in order
_FORMS: tuple[tuple[str, Callable[[Row, str, Given], Point]], ...] = (
    ("output_throughput", _serve),
    ("total_output_tokens_retokenized", _serve),
    ("prefill_latency", _one_batch),
    ("output_token_throughput", _aiperf),
    ("throughput_tokens_per_sec", _summary),
    ("tokens_per_s", _own),
    ("tpot_ms", _own),
)


def _form(row: Row, place: str) -> Callable[[Row, str, Given], Point]:
    found = next((form for key, form in _FORMS if key in row), None)
    if found is None:
        keys = ", ".join(key for key, _ in _FORMS)
        raise ServingError(f"{place}: no known benchmark result; none of these keys is there: wall_time, {keys}")
    return found
