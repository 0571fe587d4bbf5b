"""Files of unknown format: named and left out where a folder or a glob found them, refused where they were named."""

from __future__ import annotations

import pytest
from log_files import SAMPLES, chat, write

from tenfold.errors import LogFormatError
from tenfold.logs import load


@pytest.fixture
def folder(tmp_path):
    held = tmp_path / "logs"
    held.mkdir()
    write(held / "a.jsonl", [chat(1)])
    (held / "costs.json").write_bytes((SAMPLES / "openai_org_costs.json").read_bytes())
    (held / "notes.txt").write_text("secret words\n")
    write(held / "other.json", [{"a": 1}])
    return held


def test_a_folder_loads_what_is_known_and_names_the_rest(folder):
    summary = load(folder).summary
    assert (summary["files"], summary["requests"], summary["buckets"]) == (2, 1, 2)
    assert summary["by_format"] == {"openai_chat": 1, "openai_org_costs": 0}
    assert summary["buckets_by_format"] == {"openai_org_costs": 2}
    assert [one["file"] for one in summary["unread"]] == [str(folder / "notes.txt"), str(folder / "other.json")]
    assert "plain text" in summary["unread"][0]["why"]
    assert "secret" not in summary["unread"][0]["why"]
    assert summary["unread"][1]["why"] == "unknown log format (looks like JSON lines). Found: a"


def test_a_refusal_names_the_nearest_formats_alone(tmp_path):
    with pytest.raises(LogFormatError, match="No format's keys are among them.*tenfold formats.*--map FILE"):
        load(write(tmp_path / "a.jsonl", [{"a": 1}]))
    with pytest.raises(LogFormatError) as caught:
        load(write(tmp_path / "b.jsonl", [{"timestamp": 1, "input_length": 5, "out": 7}]))
    said = str(caught.value)
    assert "mooncake_trace: timestamp and input_length and output_length" in said
    assert len(said.removeprefix(str(tmp_path))) < 700  # of all formats it would be some 4,000


def test_what_was_named_is_refused_and_nothing_is_loaded(folder, tmp_path):
    db = tmp_path / "u.duckdb"
    with pytest.raises(LogFormatError, match="other.json.*so nothing was loaded|so nothing was loaded.*other.json"):
        load([folder, folder / "other.json"], db=db)
    with pytest.raises(LogFormatError, match="no log format"):
        load(folder, db=db, format="openai_chatt")
    assert not db.exists()
    for file in ("a.jsonl", "costs.json"):
        (folder / file).unlink()
    with pytest.raises(LogFormatError, match="2 of 2 files are of no known format"):
        load(f"{folder}/*", db=db)
