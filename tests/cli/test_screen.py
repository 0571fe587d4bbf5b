"""What people see: text from logs is shown as it is, and nothing of theirs is overwritten."""

import contextlib
import io
import json
import shutil
from importlib import util

import pytest

from tenfold import extras

SMALL = {"ts": "2026-09-01T00:00:00Z", "provider": "openai", "model": "gpt-4.1", "input_tokens": 10, "output_tokens": 1}
HOSTILE = ("[/red]b", "[bold]x[/bold]", "ops [/eu] x", "[prod] search", "a\\[b]", ":smile:")


@pytest.fixture(scope="module")
def hostile_made(main_in, tmp_path_factory):
    made = tmp_path_factory.mktemp("screen")
    lines = [
        {
            "request_id": f"id[{n}/]",
            "ts": f"2026-09-0{n + 1}T00:00:00Z",
            "provider": "openai",
            "model": "gpt-4.1" if n else "[/foo]",
            "team": team,
            "input_tokens": 1000,
            "output_tokens": 10,
        }
        for n, team in enumerate(HOSTILE)
    ]
    folder = made / "dir[old]"
    folder.mkdir()
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + "{bad\n")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main_in(made, "load", folder / "log.jsonl", "--db", "h.duckdb")
    assert code == 0
    assert "dir[old]/log.jsonl:7" in out.getvalue()
    return made


@pytest.fixture
def hostile_db(hostile_made, tmp_path):
    """A database in the command's folder; it names its log where that was loaded from."""
    shutil.copy(hostile_made / "h.duckdb", tmp_path)
    return "h.duckdb"


def test_names_are_shown_as_they_are(run, hostile_db):
    code, out, err = run("cost", "--db", hostile_db, "--by", "team,model")
    assert (code, err) == (0, "")
    for team in HOSTILE:
        assert team in out
    assert "[/foo]" in out
    code, out, _ = run("explain", "--db", hostile_db, "--request", "id[1/]", "--line")
    assert code == 0
    assert "id[1/]" in out
    assert HOSTILE[1] in out
    assert run("levers", "--db", hostile_db)[0] in (0, 3)


def test_long_names_stay_whole(run, tmp_path):
    name = "a-feature-with-a-name-of-sixty-characters-and-then-some-more-x"
    line = {"ts": "2026-09-01T00:00:00Z", "provider": "openai", "model": "gpt-4.1", "feature": name, "team": name}
    (tmp_path / "l.jsonl").write_text(json.dumps({**line, "input_tokens": 10**6, "output_tokens": 1}) + "\n")
    assert run("load", "l.jsonl", "--db", "l.duckdb")[0] == 0
    out = run("cost", "--db", "l.duckdb", "--by", "feature,team,model")[1]
    assert out.count(name) >= 2


def test_a_log_without_any_price_has_no_total(run, as_json, tmp_path):
    line = {
        "ts": "2026-09-01T00:00:00Z",
        "provider": "openai",
        "model": "gpt-4.l",
        "input_tokens": 10,
        "output_tokens": 1,
    }
    (tmp_path / "l.jsonl").write_text(json.dumps(line) + "\n")
    assert run("load", "l.jsonl", "--db", "l.duckdb")[0] == 0
    out = run("cost", "--db", "l.duckdb")[1]
    assert out.startswith("no price")
    assert 'Did you mean "gpt-4.1"?' in out
    assert as_json("cost", "--db", "l.duckdb")["total_usd"] is None


def test_a_small_bill_never_reads_as_zero(run, tmp_path):
    line = {
        "ts": "2026-09-01T00:00:00Z",
        "provider": "openai",
        "model": "gpt-4.1",
        "input_tokens": 10,
        "output_tokens": 1,
    }
    (tmp_path / "l.jsonl").write_text(json.dumps(line) + "\n")
    assert run("load", "l.jsonl", "--db", "l.duckdb")[0] == 0
    assert run("cost", "--db", "l.duckdb")[1].startswith("<$0.01")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--from", "2030-01-01"), 3, "no request in this window; the log holds"),
        (("--from", "2026-12-01", "--to", "2026-01-01"), 1, "before it begins"),
        (("--from", "0001-01-01", "--zone", "Asia/Tokyo"), 1, "outside the calendar"),
        (("--by", "team,team"), 1, "same column twice"),
        (("--min-coverage", "2"), 2, "--min-coverage"),
        (("--min-coverage", "nan"), 2, "--min-coverage"),
    ],
)
def test_windows_and_arguments_that_cannot_answer(run, hostile_db, words, code, says):
    found, _, err = run("cost", "--db", hostile_db, *words)
    assert found == code
    assert says in err


def test_explain_says_why_there_is_no_line(as_json, hostile_db, hostile_made):
    file = hostile_made / "dir[old]" / "log.jsonl"
    before = file.read_text()
    file.write_text(before.replace("1000", "1001"))
    try:
        trace = as_json("explain", "--db", hostile_db, "--request", "id[1/]", "--line")
    finally:
        file.write_text(before)  # others read it too
    assert trace["line"] is None
    assert "has changed since it was loaded" in trace["line_note"]
    assert trace["cost_usd"] == "0.00208"  # 1000 x 2 + 10 x 8 per million


def test_demo_leaves_a_folder_alone_that_is_not_its_own(run, tmp_path):
    (tmp_path / "usage.duckdb").write_text("mine")
    code, _, err = run("demo", "--out", ".")
    assert code == 1
    assert "holds other files" in err
    assert (tmp_path / "usage.duckdb").read_text() == "mine"


def test_demo_without_the_report_extra_says_how_to_get_the_page(run, monkeypatch):
    absent = ("altair", "jinja2", "great_tables", "vl_convert")
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in absent else util.find_spec(name))
    code, out, err = run("demo", "--out", "d")
    assert code == 0, err
    assert "batch_api" in out
    assert "not written" in out
    assert "tenfold[report]" in out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("report_zone = 5", 'report_zone = 5: write it like "UTC"'),
        ('lock_timeout_s = "x"', "lock_timeout_s"),
        ("memory_limit = 2", "memory_limit"),
        ('repot_zone = "UTC"', 'Did you mean "report_zone"?'),
        ('report_zone = "Europe/Berln"', 'Did you mean "Europe/Berlin"?'),
    ],
)
def test_settings_are_checked(run, tmp_path, text, says):
    (tmp_path / "tenfold.toml").write_text(text)
    code, _, err = run("cost", "--db", "x.duckdb")
    assert code == 1
    assert says in err


def test_a_price_folder_with_a_file_that_is_no_price_file_is_refused(run, hostile_db, tmp_path):
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "x.toml").write_text('[[entry]]\nmodel = "m"\n')
    code, _, err = run("cost", "--db", hostile_db, "--prices", "my")
    assert code == 1
    assert "x.toml: no provider" in err


def test_version(run):
    assert run("--version")[1].strip() == "0.1.0"
