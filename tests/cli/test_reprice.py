"""``tenfold prices reprice``: dry, by model and meter, and as credit lines."""

import csv
import io

from corrected_prices import CORRECTED

LOG = """request_id,provider,model,ts,input_tokens,output_tokens
r0,openai,gpt-5,2026-08-01T00:00:00Z,1000,10
r1,openai,gpt-5,2026-08-03T00:00:00Z,2000,10
r2,openai,gpt-new,2026-08-04T00:00:00Z,3000,10
"""


def test_credit_lines_and_the_screen(run, tmp_path):
    (tmp_path / "fix").mkdir()
    (tmp_path / "fix" / "openai.toml").write_text(CORRECTED)
    (tmp_path / "log.csv").write_text(LOG)
    assert run("load", "log.csv", "--db", "u.duckdb")[0] == 0
    before = (tmp_path / "u.duckdb").read_bytes()
    code, out, err = run("prices", "reprice", "--db", "u.duckdb", "--with", "fix", "--credit")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["request_id"], row["adjustment_usd"]) for row in rows] == [("r1", "-0.0005"), ("r2", "")]
    assert "2 adjustments" in err
    code, out, _ = run("prices", "reprice", "--db", "u.duckdb", "--with", "fix")
    assert "gpt-new: 1 of 1 requests have no price in the old book ($0.01 in the new one)" in " ".join(out.split())
    assert (tmp_path / "u.duckdb").read_bytes() == before
