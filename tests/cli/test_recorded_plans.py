"""``tenfold levers --record``, ``--recorded`` and ``--track NAME``: as scripts and people use them."""

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

NAME = "=1+1 \x1b[31m\u202e<b>'; drop table plans; --"
# by day, 1,000 in and 100 out of a chat that could wait: what batch takes half off
ROWS = [
    {
        "request_id": f"r{day}", "ts": f"2026-0{4 + day // 30}-{day % 30 + 1:02}T12:00:00Z", "provider": "openai",
        "model": "gpt-4.1", "service_tier": "standard" if day < 60 else "batch", "input_tokens": 100_000,
        "cache_read_tokens": 0, "output_tokens": 10_000, "is_stream": False, "feature": "tagging",
        "status": "success", "finish_reason": "stop",
    }
    for day in range(90)
]  # fmt: skip
BATCH = "[batch_api]\nwhere = \"feature = 'tagging'\"\neffort_days = 0\n"
BEFORE = ("--to", "2026-06-01", "--assume", "assume.toml")


@pytest.fixture(scope="module")
def made(main_in, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert main_in(folder, "load", "log.jsonl", "--db", "u.duckdb") == 0
    return folder / "u.duckdb"


@pytest.fixture
def db(made, tmp_path):
    (tmp_path / "assume.toml").write_text(BATCH)
    return shutil.copy(made, tmp_path / "u.duckdb")


def test_a_plan_is_recorded_listed_and_tracked(run, as_json, db, tmp_path, monkeypatch):
    assert as_json("levers", "--db", db, "--recorded")["plans"] == []
    before = datetime.now(UTC)
    plan = as_json("levers", "--db", db, *BEFORE, "--record", NAME)
    entry = plan["recorded"]
    assert before <= datetime.fromisoformat(entry["recorded_at"]) <= before + timedelta(minutes=5)
    assert entry["name"] == NAME
    assert entry["window"] == {"first_day": "2026-04-01", "last_day": "2026-05-31", "zone": "UTC"}
    assert (entry["card_version"], entry["log_hash"]) == (plan["card_version"], plan["log_hash"])
    assert (entry["levers"], entry["saving_usd"]) == (["batch_api"], plan["plan"]["saving_usd"])
    assert as_json("levers", "--db", db, "--recorded")["plans"] == [entry]

    # 60 requests at 0.28 USD, 0.14 in the batch tier; the later 30 were sent there
    kept = as_json("levers", "--db", db, "--from", "2026-06-01", "--track", NAME)
    assert kept["tracked"] == {"name": NAME, "recorded_at": entry["recorded_at"]}
    assert (kept["promised_usd"], kept["realised_usd"]["mid"], kept["kept_ratio"]) == ("4.20", "4.20", 1.0)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    by_file = as_json("levers", "--db", db, "--from", "2026-06-01", "--track", "plan.json")
    assert by_file["tracked"] == {"file": "plan.json"}
    assert {**by_file, "tracked": None} == {**kept, "tracked": None}

    for words in (("--recorded",), ("--from", "2026-06-01", "--track", NAME)):
        code, out, _ = run("levers", "--db", db, *words)
        assert code == 0
        assert not set(out) & set("\x1b\u202e")
        assert "⟨U+001B⟩" in out
    monkeypatch.setattr("tenfold.cli.levers.plan", None)  # a name that is taken is told before a plan is made
    code, out, err = run("levers", "--db", db, *BEFORE, "--record", NAME)
    assert (code, out) == (1, "")
    assert "--replace" in err
    assert len(err.splitlines()) == 1


@pytest.mark.full
def test_what_is_shown_to_people(run, db):
    code, out, _ = run("levers", "--db", db, *BEFORE, "--record", "2026Q2")
    assert code == 0
    assert 'Recorded as "2026Q2" at 20' in out
    code, out, _ = run("levers", "--db", db, *BEFORE, "--record", "2026Q2", "--replace")
    assert code == 0
    _, out, _ = run("levers", "--db", db, "--recorded")
    assert "$8.40" in out
    assert "to 2026-05-31 (UTC)" in out
    _, out, _ = run("levers", "--db", db, "--from", "2026-06-01", "--track", "2026Q2")
    assert out.startswith('Plan "2026Q2" of 2026-04-01 to 2026-05-31 (UTC), recorded 20')


@pytest.mark.full
def test_a_recorded_name_comes_before_a_file_of_that_name(as_json, db, tmp_path):
    plan = as_json("levers", "--db", db, *BEFORE, "--record", "same")
    (tmp_path / "same").write_text(json.dumps(plan))
    assert "name" in as_json("levers", "--db", db, "--from", "2026-06-01", "--track", "same")["tracked"]
    assert "file" in as_json("levers", "--db", db, "--from", "2026-06-01", "--track", "./same")["tracked"]


@pytest.mark.full
def test_a_plan_that_cannot_be_kept_is_shown_all_the_same(run, db, tmp_path):
    (tmp_path / "tenfold.toml").write_text("lock_timeout_s = 0.1\n")
    holder = "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); print('go', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        code, out, err = run("levers", "--db", db, *BEFORE, "--record", "x", "--json")
        process.stdin.close()
    assert code == 1
    assert json.loads(out)["plan"]["levers"] == ["batch_api"]
    assert "recorded" not in json.loads(out)
    assert "the plan above was not recorded: " in err
    assert f"PID {process.pid}" in err


@pytest.mark.full
def test_nothing_is_recorded_where_nothing_can_be_measured(run, as_json, db):
    with duckdb.connect(str(db)) as connection:
        connection.execute("update requests set is_stream = null, status = null, finish_reason = null, ts = null")
    code, _, err = run("levers", "--db", db, "--record", "x", "--assume", "assume.toml", "--from", "2026-01-01")
    assert (code, "so nothing was recorded" in err) == (3, True)
    assert as_json("levers", "--db", db, "--recorded")["plans"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--replace",), "--replace is about the name of --record"),
        (("--record", "a", "--recorded"), "--record and --recorded are different questions"),
        (("--record", "a", "--track", "b"), "--record and --track"),
        (("--record", " "), "not blank"),
        (("--track", "2026Q2"), "2026Q2: neither a recorded plan nor a file. None was: tenfold levers --record NAME"),
        (("--track", "assume.toml"), "assume.toml: not JSON"),
        (("--track", "x" * 300), "cannot be read: File name too long"),
    ],
)
def test_what_is_refused_says_the_way_out(run, db, words, said):
    code, out, err = run("levers", "--db", db, *words)
    assert (code, out) == (1, "")
    assert said in err
    assert len(err) < 500


def test_a_review_that_cannot_be_written_records_nothing(run, as_json, db, monkeypatch):
    monkeypatch.setattr("tenfold.cli.review.plan", lambda *_, **__: pytest.fail("the work began"))
    code, out, err = run("review", "--db", db, "--quarter", "2026Q2", "--record", "no", "--out", "nodir/x.md")
    assert (code, out) == (1, "")
    assert "nodir/x.md: there is no directory nodir" in err
    assert "no" not in [one["name"] for one in as_json("levers", "--db", db, "--recorded")["plans"]]
