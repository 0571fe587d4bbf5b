"""What `tenfold formats` lists is what the readers are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tenfold.logs import READERS, normalise
from tenfold.logs.buckets import BUCKET_READERS
from tenfold.logs.catalogue import FLAGS, formats

README = Path(__file__).parents[2] / "README.md"


def test_every_reader_is_listed_and_says_all_there_is_to_say():
    found = {one["name"]: one for one in formats()}
    assert list(found) == [reader.name for reader in (*READERS, *BUCKET_READERS)]
    for one in found.values():
        assert all(one[key] for key in ("containers", "becomes", "convention", "one_request", "merges")), one
        assert all(option.startswith("--set ") for option in one["must_be_set"]), one
    assert all(reader.holds for reader in BUCKET_READERS)


def test_what_is_said_agrees_with_the_reader():
    for reader, one in zip(READERS, formats(), strict=False):
        has_id = reader.dedup_key != "NULL"
        assert bool(reader.one_request) == has_id, reader.name
        excludes = reader.shape.includes_cache is False
        assert one["convention"].startswith("exclusive" if excludes else ("inclusive", "disjoint")), reader.name
        # what a line never says has to be said by the load
        for column in ("model", "provider"):
            unsaid = any(option.startswith(f"--set {column}=") for option in reader.unsaid)
            assert unsaid or column in reader.fields, reader.name
        assert ("cost" in one["carries"]) == (reader.fields.get("cost_logged_usd", "NULL") != "NULL"), reader.name


def test_conventions_of_the_sources_as_they_declare_them():
    told = {one["name"]: re.split(r"[ ,(]", one["convention"])[0] for one in formats()}
    for name in ("anthropic_messages", "anthropic_stream", "anthropic_batch", "claude_code"):
        assert told[name] == "exclusive"
    for name in ("bedrock_log", "bedrock_batch", "bedrock_converse"):
        assert told[name] == "exclusive"
    for name in ("openai_chat", "openai_responses", "gemini", "otlp", "openinference", "litellm_spend", "codex"):
        assert told[name] == "inclusive"
    assert told["langfuse"] == "disjoint"


def test_every_flag_of_a_reader_is_explained():
    assert {flag for reader in READERS for flag in reader.flags} <= FLAGS.keys()
    body = inspect.getsource(normalise).split("def _flags(")[1].split("\ndef ")[0]
    assert set(re.findall(r'"([a-z_]+)": ', body)) <= FLAGS.keys()
