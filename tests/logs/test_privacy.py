"""No text of prompts or answers leaves a log: neither into the store's excerpts nor into files on the way."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import tempfile

import pytest
from log_files import SAMPLES
from quick import few

from tenfold.logs import load

SECRET = "my secret prompt"


def spend_rows():
    with (SAMPLES / "litellm_spendlogs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        metadata = json.loads(row["metadata"]) | {"requester_metadata": {"note": SECRET}}
        metadata["usage_object"] = (metadata.get("usage_object") or {}) | {"note": SECRET}
        row |= {"messages": SECRET, "response": SECRET, "metadata": json.dumps(metadata)}
    return rows


def text_of(rows, kind):
    """A file with one broken line at its end, so that it goes through the line-by-line pass."""
    if kind == "csv":
        held = io.StringIO()
        writer = csv.DictWriter(held, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return held.getvalue() + f"{SECRET},ragged\n"
    return "".join(json.dumps(row) + "\n" for row in rows) + json.dumps({"messages": SECRET})[:-3]


@pytest.mark.parametrize("kind", few(1, ["csv", "jsonl"]))
def test_temporary_files_hold_the_readers_own_values_only(tmp_path, monkeypatch, kind):
    kept = tmp_path / "kept"
    kept.mkdir()
    file = tmp_path / f"a.{kind}"
    file.write_text(text_of(spend_rows(), kind))
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda: contextlib.nullcontext(str(kept)))
    log = load(file)
    assert log.summary["rejected"] == 1
    written = "".join(part.read_text() for part in kept.iterdir())
    assert "source_line" in written  # rejects alone; the good records never are in a file of their own
    assert SECRET not in written
    assert SECRET not in str(log.rejects.to_dicts())
    # and what the strict read makes of the same rows is what the pruned ones make
    place = ["source_file", "source_line", "load_id", "prompt_hash", "response_hash", "prefix_hashes"]
    place += ["params_hash", "prefix_block_tokens"]
    right = load(SAMPLES / "litellm_spendlogs.csv").requests.drop(place)
    assert log.requests.drop(place).to_dicts() == right.to_dicts()
