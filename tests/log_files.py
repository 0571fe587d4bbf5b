"""Small log files for tests of the load."""

from __future__ import annotations

import json
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
COUNTED = ("requests", "duplicates", "merged", "rejected")
HIDDEN_COLUMNS = ["source_file", "load_id"]


def chat(number, *, prompt=100, completion=10, cached=0, **more):
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
    }
    base = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1793577600 + number, "model": "gpt-5"}
    return {**base, "usage": usage, **more}


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def counted(log):
    return tuple(log.summary[name] for name in COUNTED)


def table(log):
    return log.requests.drop(HIDDEN_COLUMNS).sort("source_line", "request_id").to_dicts()
