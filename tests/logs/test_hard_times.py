"""Times in units and spellings that sources really use, and those that no source can mean."""

from __future__ import annotations

import json

import pytest

from tenfold.ledger import attribute
from tenfold.logs import load
from tenfold.prices import price_book

CASES = {
    # the same instant in s, ms, us and ns
    "1793577600": "2026-11-02 00:00:00",
    "1793577600123": "2026-11-02 00:00:00.123000",
    "1793577600123456": "2026-11-02 00:00:00.123456",
    "1793577600123456768": "2026-11-02 00:00:00.123457",
    "1.793577600e9": "2026-11-02 00:00:00",
    # fractions of seven and nine digits, a fraction of a unit
    "2026-11-01T10:00:00.1234567Z": "2026-11-01 10:00:00.123456",
    "2026-11-01T10:00:00.123456789Z": "2026-11-01 10:00:00.123456",
    "2026-11-01T10:00:00.123456789+05:30": "2026-11-01 04:30:00.123456",
    "1793577600123.456": "2026-11-02 00:00:00.123456",
    "1793577600.5": "2026-11-02 00:00:00.500000",
    # as databases and dashboards write them
    "2026-11-01 10:00:00 UTC": "2026-11-01 10:00:00",
    "2026-11-01 10:00:00+00": "2026-11-01 10:00:00",
    "2026-11-01T10:00Z": "2026-11-01 10:00:00",
    # no shape that a source is known to write
    "yesterday": "None",
    "2026-11-01T25:00:00Z": "None",
    "01/11/2026 10:00": "None",
    "1,793,577,600": "None",
    # a date's digits, a placeholder, times that nobody logged
    "20261101": "None",
    "0": "None",
    "-1": "None",
    "99999999999999999999": "None",
    "9999-12-31T23:59:59Z": "None",
    "0000-01-01T00:00:00Z": "None",
    "1970-01-01T00:00:00Z": "None",
    "infinity": "None",
    # offsets and zones
    "2026-11-01T10:00:00+99:00": "None",
    "2026-11-01T10:00:00-0800": "2026-11-01 18:00:00",
    "2026-11-01T10:00:00 +0530": "2026-11-01 04:30:00",
    "2026-11-01T10:00:00 Europe/Berlin": "2026-11-01 09:00:00",
    "2026-11-01T10:00:00+01:00[Europe/Berlin]": "2026-11-01 09:00:00",
    "2026-11-01T10:00:00[Europe/Berlin]": "2026-11-01 09:00:00",
    "2026-11-01T10:00:00 Mars/Base": "None",
    "2026-11-01T10:00:00 EST": "None",
    "2026-11-01T10:00:00GMT": "2026-11-01 10:00:00",
    # headers of mail and HTTP, and web servers' logs
    "Fri, 09 Jan 2026 10:00:00 GMT": "2026-01-09 10:00:00",
    "Fri, 9 Jan 2026 10:00:00 -0800": "2026-01-09 18:00:00",
    "Fri, 09 Jan 1998 10:00:00 GMT": "None",
    "Fri, 31 Feb 2026 10:00:00 GMT": "None",
    "09/Jan/2026:10:00:00 +0530": "2026-01-09 04:30:00",
    "[09/Jan/2026:10:00:00 +0000]": "2026-01-09 10:00:00",
}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    def line(name, ts):
        usage = {"prompt_tokens": 1000, "completion_tokens": 1, "prompt_tokens_details": {}}
        return json.dumps({"id": name, "model": "gpt-5", "usage": usage, "_log": {"ts": ts}})

    file = tmp_path_factory.mktemp("times") / "a.jsonl"
    file.write_text("".join(line(written, written) + "\n" for written in CASES))
    return load(file)


@pytest.mark.parametrize("written", CASES)
def test_times_are_read_or_flagged(log, written):
    (row,) = (row for row in log.requests.to_dicts() if row["request_id"] == written)
    assert str(row["ts"]) == CASES[written]
    assert row["flags"] == (["bad_ts"] if CASES[written] == "None" else None)


def test_the_database_stays_usable(log):
    total = attribute(log, price_book()).composition(["model"])
    assert total.frame["requests"].sum() == len(CASES)
