"""The assumptions file that is printed to be filled in is one that can be read."""

import tomllib
from pathlib import Path

from tenfold.levers import LEVERS
from tenfold.levers.assume import assumptions

SAMPLES = Path(__file__).parents[1] / "samples"


def test_a_template_with_every_key_and_its_default(run):
    code, printed, _ = run("assume")
    assert code == 0
    known = {lever.name for lever in LEVERS}
    for lever in LEVERS:
        for one in lever.assumptions:
            assert f"# {one.name} = " in printed
    lines = [line.removeprefix("# ") for line in printed.splitlines() if " = ..." not in line]
    keys = [line for line in lines if line.startswith("[") or (" = " in line and line.split(" = ")[0].isidentifier())]
    keys = [line for line in keys if not line.startswith(("include", "exclude"))]
    tables = tomllib.loads("\n".join(keys))
    assert set(tables) == {*known, "plan"}
    found = assumptions(tables, LEVERS)
    defaults = assumptions({name: {} for name in known}, LEVERS)
    assert {name: one.values for name, one in found.levers.items()} == {
        name: one.values for name, one in defaults.levers.items()
    }
    assert found.plan == defaults.plan


def test_a_database_of_reports_alone_has_no_savings(run):
    run("load", SAMPLES / "openai_org_usage_completions.json", "--db", "u.duckdb")
    code, _, error = run("levers", "--db", "u.duckdb")
    assert code == 3
    assert "no request: a saving is refused" in error
