"""A published folder in place of the database: every reading command says the same, every writing one refuses."""

import json
import re
import shlex

import pytest
from published_logs import loaded, rows
from typer.main import get_command

import tenfold as tf
from tenfold.cli import app

# Commands with --db that write to the database, or are about copies of it.
WRITES = {"load", "owners", "publish", "forget"}
SIMULATED = tuple(
    shlex.split("--model llama3-8b --gpu h100-sxm --tp 1 --weights fp8 --kv fp8 --budget 8192 --policy chunked")
)
_PLAN = ("--assume", "logs/assume.toml")
READS = {
    "cost": [("--by", "team,model,day"), ("--by", "month", "--zone", "Asia/Tokyo"), ("--by", "user_id")],
    "bridge": [("--quarter", "2026Q3")],
    "kpis": [("--quarter", "2026Q3")],
    "anomalies": [()],
    "forecast": [()],
    "explain": [("--request", "msg_LK000078")],
    "prices reprice": [("--with", "own")],
    "levers": [(), (*_PLAN, "--slo", "logs/slo.toml", "--breaks"), ("--recorded",)],
    "serving fleet": [("--fleet", "fleet.toml")],
    "serving breakeven": [("--model", "llama3-8b", "--gpu", "h100-sxm")],
    "serving choose": [()],
    "serving simulate": [SIMULATED],
    "diagnose": [("--find",), ("--around", "2026-08-10")],
    "review": [("--quarter", "2026Q3", "--out", "made.html")],
    "reconcile": [()],
    "export focus": [("--out", "made.csv")],
    "export csv": [("--out", "made.csv")],
    "export parquet": [("--out", "made.parquet")],
    "export xlsx": [("--out", "made.xlsx")],
    "export explain": [("focus.csv", "--row", "3")],
}
FLEET = """
[[pool]]
name = "p"
gpu = "h100-sxm"
gpus = 2
model = "llama3-8b"
usd_per_gpu_hour = "2.5"
"""


def with_db(command, path=()):
    for name, one in command.commands.items():
        if hasattr(one, "commands"):
            yield from with_db(one, (*path, name))
        elif any("--db" in parameter.opts for parameter in one.params):
            yield " ".join((*path, name))


def test_every_command_that_reads_a_database_is_held_here():
    assert set(with_db(get_command(app))) == READS.keys() | WRITES


@pytest.fixture(scope="module")
def demo(main_in, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    assert main_in(folder, "demo", "--out", "demo") == 0
    tf.publish(tf.open_log(folder / "demo" / "usage.duckdb"), folder / "demo" / "published")
    return folder / "demo"


def plain(text, db):
    """An answer without the name of its database and the time it took."""
    return re.sub(r'"(made_at|generated_at)": "[^"]*"', "", text.replace(str(db), "DB"))


@pytest.mark.full
@pytest.mark.parametrize("command", READS)
def test_every_reading_command_says_the_same_on_the_demo(run, demo, tmp_path, command):
    (tmp_path / "logs").symlink_to(demo / "logs")
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "own").mkdir()
    if command == "export explain":
        assert run("export", "focus", "--db", demo / "usage.duckdb", "--out", "focus.csv")[0] == 0
    for words in READS[command]:
        said = []
        for name in ("usage.duckdb", "published"):
            code, out, err = run(*command.split(), "--db", demo / name, *words, "--json")
            made = sorted((file.name, file.read_bytes()) for file in tmp_path.glob("made*") if file.suffix != ".xlsx")
            files = [(file, plain(content.decode(errors="replace"), demo / name)) for file, content in made]
            said.append((code, plain(out, demo / name), plain(err, demo / name), files))
        assert said[0] == said[1], words
        assert said[0][0] in (0, 3), said[0][2]


@pytest.mark.full
def test_windows_of_a_published_folder_are_named_like_those_of_a_file(run, demo):
    spans = ("2026-07-01..2026-08-01", "2026-08-01..2026-09-01")
    said = []
    for name in ("usage.duckdb", "published"):
        before, after = (f"{demo / name}@{span}" for span in spans)
        code, out, err = run("diagnose", "--before", before, "--after", after, "--json")
        said.append((code, plain(out, demo / name), plain(err, demo / name)))
    assert said[0] == said[1]
    assert json.loads(said[0][1])


@pytest.fixture
def _small(tmp_path):
    loaded(tmp_path / "u.duckdb", rows())


@pytest.mark.full
@pytest.mark.usefixtures("_small")
def test_publish_and_forget_say_what_they_did(run, as_json):
    made = as_json("publish", "--db", "u.duckdb", "--out", "pub")
    assert (made["is_new"], made["rows"], made["written"], made["linked"]) == (True, 24, 7, 0)
    code, out, _ = run("publish", "--db", "u.duckdb", "--out", "pub")
    assert code == 0
    assert "nothing has changed" in out
    one, other = (as_json("cost", "--db", name, "--by", "user_id") for name in ("u.duckdb", "pub"))
    assert one == other
    dry = as_json("forget", "--db", "u.duckdb", "--user", "bob", "--dry-run")
    done = as_json("forget", "--db", "u.duckdb", "--user", "bob", "--published", "pub")
    assert (done["requests"], done["requests_left"], done["published"]["rows"]) == (6, 18, 18)
    assert {**dry, "dry_run": False, "published": done["published"]} == done
    assert as_json("cost", "--db", "pub")["requests"] == 18
    code, out, _ = run("forget", "--db", "u.duckdb", "--before", "2026-07-03")
    assert code == 0
    assert "may still hold them" in " ".join(out.split())


@pytest.mark.full
@pytest.mark.usefixtures("_small")
def test_writing_commands_refuse_a_folder(run):
    assert run("publish", "--db", "u.duckdb", "--out", "pub")[0] == 0
    for words in (
        ("load", "a.jsonl"), ("owners",), ("forget", "--user", "bob"), ("levers", "--record", "x"),
    ):  # fmt: skip
        code, _, err = run(words[0], "--db", "pub", *words[1:])
        assert (code, err.count("\n")) == (1, 1)
        assert "can only be read" in err
    code, _, err = run("publish", "--db", "pub", "--out", "other")
    assert code == 1
    assert "Publish from the database" in err
    for folder, said in (("none", "no such database"), (".", "a directory, not a database")):
        code, _, err = run("cost", "--db", folder)
        assert code == 1
        assert said in err
