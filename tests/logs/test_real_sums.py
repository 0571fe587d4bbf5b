"""Real files load with the sums that their sources give, request by request as the slow reader has them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import slow_reader
from quick import few

from tenfold.logs import load
from tenfold.store.schema import TOKEN_COLUMNS

DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no {DATA}: set TENFOLD_REAL_DATA to the public traces"),
]
# Where a source's own total and our sum part, a row says so in one of these.
SAID = {"total_mismatch", "convention_by_total", "convention_unproven", "cache_gt_input", "reasoning_gt_output"}
LINES = {
    "azure/AzureLLMInferenceTrace_code.csv": "azure_llm_trace",
    "azure/AzureLLMInferenceTrace_conv.csv": "azure_llm_trace",
    "mooncake/conversation_trace.jsonl": "mooncake_trace",
    "mooncake/synthetic_trace.jsonl": "mooncake_trace",
    "ccusage/claude_project-alpha_session-alpha.jsonl": "claude_code",
    "ccusage/claude_project-beta_session-beta.jsonl": "claude_code",
    "ccusage/codex_session-alpha.jsonl": "codex",
}


def as_loaded(log, file):
    frame = log.requests.filter(log.requests["source_file"] == str(file)).sort("source_line")
    told = [column for column in TOKEN_COLUMNS if column not in {"input_tokens", "output_tokens"}]
    for row in frame.to_dicts():
        if row["token_source"] == "estimated":  # counted in the text: the source itself says nothing
            assert all(row[column] is None for column in told)
            yield (None,) * len(TOKEN_COLUMNS)
        else:
            yield tuple(row[column] for column in TOKEN_COLUMNS)


@pytest.mark.full
def test_lines_as_the_slow_reader_has_them():
    log = load([DATA / path for path in LINES])
    refused, beside = 0, 0
    for path, name in LINES.items():
        file = DATA / path
        slow = slow_reader.read(slow_reader.FORMATS[name], file.read_bytes(), is_table=file.suffix == ".csv")
        assert list(as_loaded(log, file)) == [row.counts for row in sorted(slow.rows, key=lambda row: row.line)], path
        refused, beside = refused + len(slow.rejected), beside + slow.ignored
    assert (log.summary["rejected"], log.summary["ignored"]) == (refused, beside)


@pytest.mark.full
def test_traces_as_the_slow_reader_has_them():
    files = sorted((DATA / "langfuse").glob("*.json"))
    log = load(files)
    assert (len(files), log.summary["rejected"]) == (13, 0)
    totals = {}
    for file in files:
        held = json.loads(file.read_text(encoding="utf-8"))["observations"]
        lines = "".join(json.dumps(one) + "\n" for one in held).encode()
        slow = slow_reader.read(slow_reader.FORMATS["langfuse"], lines)
        assert sorted(as_loaded(log, file), key=str) == sorted((row.counts for row in slow.rows), key=str), file
        totals |= {one["id"]: (one.get("usageDetails") or {}).get("total") for one in held}
    parted = 0
    for row in log.requests.to_dicts():
        known, total = [row["input_tokens"], row["output_tokens"]], totals[row["request_id"]]
        if total and None not in known and row["token_source"] == "reported" and sum(known) != total:
            assert SAID & set(row["flags"] or ()), row
            parted += 1
    assert parted <= 3


def test_what_ccusage_counts():
    # by hand: 100+25+10, 200+50+20 and 300+40; 50+5+15 and 80+10+25; 1,000 and 2,500, the last of the totals
    right = {
        "claude_project-alpha_session-alpha": (3, 745, 70, 75, 250),
        "claude_project-beta_session-beta": (2, 185, 40, 15, 60),
        "codex_session-alpha": (2, 3500, 750, 0, 425),
    }
    log = load(sorted((DATA / "ccusage").glob("*.jsonl")))
    assert log.summary["rejected"] == 0
    found = {}
    for row in log.requests.to_dicts():
        counts = (1, *(row[f"{name}_tokens"] or 0 for name in ("input", "cache_read", "cache_write", "output")))
        name = Path(row["source_file"]).stem
        found[name] = tuple(map(sum, zip(found.get(name, (0,) * 5), counts, strict=True)))
    assert found == right


@pytest.mark.parametrize("engine", few(1, ["llamacpp", "sglang", "vllm"]))
def test_a_benchmarks_requests_sum_to_its_summary(engine):
    file = DATA / "bench" / f"ree2raz_raw_{engine}_short_c4_r1.jsonl"
    summary = [json.loads(line) for line in (DATA / "bench" / "ree2raz_summary.jsonl").read_text().splitlines()]
    (one,) = [
        row
        for row in summary
        if (row["engine"], row["regime"], row["concurrency"], row["repeat"]) == (engine, "short", 4, 1)
    ]
    columns = {"output_tokens": "output_tokens", "status": "success"}
    log = load(file, map={"columns": columns, "constants": {"provider": "self-hosted", "model": engine}})
    assert (log.summary["requests"], log.summary["rejected"]) == (one["total_requests"], 0)
    assert log.requests["output_tokens"].sum() == one["total_output_tokens"]
