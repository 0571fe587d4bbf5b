"""Last of all: every step of `store/sql/` has run on both engines and was compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark.twin import DUCKDB_ALONE, heads


def test_every_step_ran_on_both_engines(request, ran):
    files = {item.path for item in request.session.items}
    if (
        not files >= set(Path(__file__).parent.glob("test_*.py"))
        or request.config.option.keyword
        or hasattr(request.config, "workerinput")
    ):
        pytest.skip("only some of tests/spark ran in this process: nothing to say about every step")
    steps = set(heads().values())
    assert set(DUCKDB_ALONE) <= steps
    assert not ran & set(DUCKDB_ALONE), "runs on both: take it out of the exceptions"
    assert sorted(steps - ran - set(DUCKDB_ALONE)) == []
