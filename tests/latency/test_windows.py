"""Two windows of a log as columns: against a frame of the same rows, taken apart by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from quick import few
from real_data import real

from tenfold.errors import AssumptionError, LogFormatError, StoreError
from tenfold.latency.preconditions import check
from tenfold.latency.windows import Part, read_pair
from tenfold.logs import load, open_log

DAY = datetime(2026, 9, 1)
BENCH = {
    "columns": {"output_tokens": "output_tokens", "status": "success", "ttft_ms": "ttft", "duration_ms": "wall_time"},
    "units": {"ttft_ms": "s", "duration_ms": "s"},
}


def rows():
    """Forty requests of two days, out of order, of two models; what is filled where differs by column."""
    made = []
    for i in range(40):
        late = i >= 20
        made.append(
            {
                "request_id": f"r{i}",
                "ts": DAY + timedelta(days=late, seconds=(37 * i) % 41, milliseconds=i),
                "provider": "self-hosted",
                "model": "small" if i % 4 == 3 else "large",
                "input_tokens": 100 + i,
                "cache_read_tokens": i,
                "output_tokens": 20 + i,
                "ttft_ms": 200.0 + i,
                "duration_ms": 1000.0 + 10 * i,
                "status": ("success", "error", "incomplete", "success", None)[i % 5],
                "http_status": 500 if i % 10 == 9 else 200,
                "gateway_cache_hit": i == 7,
                "team": None if late else "blue",
                "project": f"p{i % 3}",
                "replica": f"pod-{('wyx' if late else 'zyx')[i % 3]}" if i % 2 else None,
                "queue_ms": 5.0 if late else None,
                "region": None,
                "is_structured": i % 2 == 0,
                "prompt_hash": f"h{i % 5}",
                "params_hash": "p" if i % 2 else "q",
            }
        )
    made[5]["ts"] = None
    made[8]["ttft_ms"] = 5000.0  # after its end
    made[12]["ttft_ms"] = made[12]["duration_ms"]  # in one piece
    made[0]["duration_ms"] = None
    return made


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    pl.DataFrame(rows(), infer_schema_length=None).write_parquet(folder / "log.parquet")
    load(folder / "log.parquet", db=folder / "log.duckdb", hashes=False)
    return folder / "log.duckdb"


@pytest.fixture(scope="module")
def both(log):
    return read_pair(f"{log}@..2026-09-02", f"{log}@2026-09-02..")


def by_hand(late):
    kept = [
        (i, row) for i, row in enumerate(rows()) if (i >= 20) == late and i not in {5, 7} and row["model"] == "large"
    ]
    return sorted(kept, key=lambda one: one[1]["ts"])


def is_answered(row):
    return row["http_status"] < 400 if row["status"] is None else row["status"] in {"success", "incomplete"}


def test_columns_are_the_logs_in_order_of_arrival(both):
    pair = both.pairs[0]
    assert [pair.model for pair in both.pairs] == ["large", "small"]
    for window, late in zip(pair.windows, (False, True), strict=True):
        kept = by_hand(late)
        times = [row["ts"].replace(tzinfo=UTC).timestamp() for _, row in kept]
        np.testing.assert_allclose(window.ts_s, times, atol=1e-6)
        assert np.all(np.diff(window.ts_s) > 0)
        assert window.input.tolist() == [row["input_tokens"] for _, row in kept]
        assert window.cached.tolist() == [row["cache_read_tokens"] for _, row in kept]
        assert window.is_structured.tolist() == [row["is_structured"] for _, row in kept]
        told = [None if code < 0 else window.replica.names[code] for code in window.replica.codes]
        assert told == [row["replica"] for _, row in kept]
        answered = np.array([is_answered(row) for _, row in kept])
        odd = np.array([i in {8, 12} for i, _ in kept])
        assert window.ok.tolist() == (answered & ~odd & np.array([i != 0 for i, _ in kept])).tolist()
        ttft = np.where(answered & ~odd, [row["ttft_ms"] / 1000 for _, row in kept], np.nan)
        np.testing.assert_allclose(window.ttft_s, ttft)
        assert np.isnan(window.e2e_s[~np.array(answered)]).all()
    assert pair.before.replica.names is pair.after.replica.names
    assert pair.before.replica.codes.dtype == np.int32
    assert pair.before.status.names == ("error", "incomplete", "ok")


def test_equal_labels_of_a_prompt_are_equal_prompts_and_parameters(both):
    pair = both.pairs[0]
    for window, late in zip(pair.windows, (False, True), strict=True):
        keys = [(row["prompt_hash"], row["params_hash"]) for _, row in by_hand(late)]
        codes = window.prompt.codes.tolist()
        assert len(set(zip(codes, keys, strict=True))) == len(set(keys)) == len(set(codes))


def test_what_only_one_window_or_none_has_is_said(both):
    pair = both.pairs[0]
    assert pair.before.queue_s is None
    assert pair.after.queue_s is None
    assert "queue_ms is filled only in the window after: not used" in pair.notes
    assert "Tenants are told by project" in pair.notes
    assert pair.before.tenant.names == ("p0", "p1", "p2")
    assert {"region", "model_revision", "preemptions"} <= set(pair.missing)
    assert not {"queue_ms", "team", "ttft_ms", "ts"} & set(pair.missing)
    assert "Window before: 1 request whose first token came after the end: no latency used" in pair.notes
    assert any("in one piece" in note for note in pair.notes)


def test_what_is_left_out_is_counted_and_the_mix_named(both):
    # r7 is small's and a gateway hit, r5 is large's and has no time
    assert [(one.model, one.before, one.after) for one in both.mix] == [("large", 14, 15), ("small", 4, 5)]
    assert both.mix[0].before_ratio == pytest.approx(14 / 18)
    assert any("1 request that a gateway's cache answered" in note for note in both.notes)
    assert any("1 request without a time" in note for note in both.notes)


def test_windows_end_before_their_end_and_narrow(log):
    edge = by_hand(True)[3][1]["ts"]
    cut = read_pair(f"{log}@..2026-09-02", f"{log}@2026-09-02..{edge.isoformat()}Z", where="model = 'large'")
    assert cut.pairs[0].after.size == 3
    assert [one.model for one in cut.mix] == ["large"]
    assert cut.pairs[0].after.until_s == edge.replace(tzinfo=UTC).timestamp()
    # midnight in Berlin is 22:00 UTC: nothing lies between it and that in UTC
    with pytest.raises(AssumptionError, match=r"no request lies in this window\. It holds 40 requests, from 2026"):
        read_pair(f"{log}@2026-09-02T12:00..", f"{log}@2026-09-02..2026-09-02T02:00", zone="Europe/Berlin")
    opened = open_log(log)
    parts = Part(opened, None, datetime(2026, 9, 2, tzinfo=UTC)), Part(opened, datetime(2026, 9, 2, tzinfo=UTC))
    assert read_pair(*parts).pairs[0].after.size == 15


def test_a_log_can_be_compared_whatever_the_models(log):
    taken = read_pair(f"{log}@..2026-09-02", f"{log}@2026-09-02..", any_model=True)
    (pair,) = taken.pairs
    assert (pair.model, pair.before.size, pair.after.size) == ("large and small", 18, 20)
    assert np.all(np.diff(pair.after.ts_s) > 0)
    other = read_pair(
        Part(open_log(log), None, datetime(2026, 9, 2, tzinfo=UTC)),
        Part(open_log(log), datetime(2026, 9, 2, tzinfo=UTC)),
        where="model = case when ts < timestamp '2026-09-02' then 'small' else 'large' end",
    )
    refused = check(other.pairs[0]).refused
    assert refused is not None
    assert "model changed: not a latency incident of the runbook (before: self-hosted/small" in refused


@pytest.mark.parametrize(
    ("before", "after", "says"),
    few(
        1,
        [
            ("{log}", "{log}", "overlap (both whole)"),
            ("{log}@..2026-09-02", "{log}@2026-09-01..2026-09-03", "overlap (both hold 2026-09-01"),
            ("{log}@2026-09-02..2026-09-01", "{log}", "ends (2026-09-01T00:00:00+00:00) before it begins"),
            ("{log}@yesterday..", "{log}", '--before "yesterday": write a day such as'),
            (["{log}", "other.jsonl"], "{log}", "is a database: name it alone"),
            ("", "{log}", "--before: names no log"),
            ("{parquet}", "{log}@..2026-09-03", "overlap (both hold ..2026-09-03"),
            ("{log}@2026-09-01..", "{log}@2027-01-01..", "2027-01-01..: no request lies in this window"),
        ],
    ),
)
def test_windows_that_are_none_are_refused(log, before, after, says):
    words = {"log": log, "parquet": log.with_suffix(".parquet")}
    filled = [one.format(**words) for one in before] if isinstance(before, list) else before.format(**words)
    with pytest.raises(AssumptionError) as refused:
        read_pair(filled, after.format(**words))
    assert says in str(refused.value)


def test_names_with_control_characters_are_written_out(tmp_path):
    for late in (False, True):
        frame = pl.DataFrame(rows()[20 * late : 20 * late + 20], infer_schema_length=None)
        frame = frame.with_columns(replica=pl.lit("gpu\x1b[31m\x07"), model=pl.lit("m\tn\x9b"), team=pl.lit("ok"))
        frame.write_parquet(tmp_path / f"{late}.parquet")
    (pair,) = read_pair(tmp_path / "False.parquet", tmp_path / "True.parquet").pairs
    assert pair.model == r"m n\x9b"
    for window in pair.windows:
        assert window.replica.names == (r"gpu\x1b[31m\x07",)
        assert set(window.replica.codes.tolist()) == {0}
        assert window.tenant.names == ("ok",)


@pytest.mark.full
def test_a_part_of_a_nanosecond_is_no_time(tmp_path):
    times = pl.Series([0.0, 5e-324, 1e-90, 1e-6, 2.0])
    for late in (False, True):
        frame = pl.DataFrame(rows()[20 * late + 10 : 20 * late + 15], infer_schema_length=None)
        frame = frame.with_columns(ttft_ms=0.0, duration_ms=times, queue_ms=times, status=None, http_status=200)
        frame.with_columns(model=pl.lit("m")).write_parquet(tmp_path / f"{late}.parquet")
    (pair,) = read_pair(tmp_path / "False.parquet", tmp_path / "True.parquet").pairs
    for window in pair.windows:
        assert np.sort(window.e2e_s)[:3].tolist() == pytest.approx([1e-9, 2e-3, np.nan], nan_ok=True)
        assert np.sort(window.queue_s)[:4].tolist() == pytest.approx([0.0, 1e-9, 2e-3, np.nan], nan_ok=True)


def test_what_is_no_log_is_refused_as_ever(log, tmp_path):
    with pytest.raises(StoreError, match="no such database"):
        read_pair(tmp_path / "none.duckdb", str(log))
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(LogFormatError):
        read_pair(tmp_path / "notes.txt", str(log))
    with pytest.raises(AssumptionError, match="--where: requests has no column"):
        read_pair(f"{log}@..2026-09-02", f"{log}@2026-09-02..", where="modle = 'x'")


@pytest.mark.full
def test_odd_windows_are_told(log):
    turned = read_pair(f"{log}@2026-09-02..", f"{log}@..2026-09-02")
    assert "The window after lies earlier in time than the one before: the change is told backwards" in turned.notes
    wide = read_pair(f"{log}@..2026-09-02", f"{log}@2026-09-02..2026-09-09")
    assert any(note.startswith("Window after: the log covers only 2026-09-02 00:00:00Z to") for note in wide.notes)


@pytest.mark.real_data
def test_real_logs_that_carry_no_diagnosis_are_refused_with_what_is_missing():
    azure = read_pair(*(real("azure", f"AzureLLMInferenceTrace_{part}.csv") for part in ("code", "conv")))
    (pair,) = azure.pairs
    assert (pair.before.size, pair.after.size) == (8_819, 19_366)
    judged = check(pair)
    assert "not in both windows: ttft_ms, duration_ms" in judged.refused
    assert [step.split(":")[0] for step in judged.next_measurements] == ["Log ttft_ms", "Log duration_ms"]


@pytest.mark.real_data
@pytest.mark.parametrize("engine", few(1, ["vllm", "llamacpp"]))
def test_a_benchmark_is_refused_with_its_rows_and_can_be_compared(engine):
    files = [real("bench", f"ree2raz_raw_{name}_short_c4_r1.jsonl") for name in ("sglang", engine)]
    (pair,) = read_pair(*files, any_model=True, reading_options={"map": BENCH}).pairs
    assert (pair.before.size, pair.after.size) == (100, 100)
    raw = [pl.read_ndjson(file) for file in files]
    if engine == "vllm":
        assert pair.before.ttft_s.tolist() == pytest.approx(raw[0]["ttft"].to_list())
        assert pair.after.ok.all()
    assert pair.after.e2e_s.tolist() == pytest.approx(raw[1]["wall_time"].to_list())
    judged = check(pair)
    lacking = "ts" if engine == "vllm" else "ts, ttft_ms"
    assert f"not in both windows: {lacking}." in judged.refused
    assert "the window before has 100 (1,900 missing for p99, 300 missing for p95)" in judged.refused
