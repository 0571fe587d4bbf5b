"""Evals files for tests of levers."""

import json

import pytest


@pytest.fixture
def scored(tmp_path):
    """Write an evals file from rows; (number, score) stands for the small model on one request."""

    def write(*rows):
        told = [one if isinstance(one, dict) else {"request_id": f"r{one[0]}", "score": one[1]} for one in rows]
        file = tmp_path / "evals.jsonl"
        file.write_text("".join(json.dumps({"model": "small", **one}) + "\n" for one in told), encoding="utf-8")
        return str(file)

    return write
