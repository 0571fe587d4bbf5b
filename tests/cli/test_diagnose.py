"""``tenfold diagnose`` from the command line: what is asked for, what is printed, what it exits with."""

import contextlib
import io
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import diagnoses as made
import numpy as np
import polars as pl
import pytest

from tenfold.cli import diagnose_screen
from tenfold.cli.common import Screen
from tenfold.errors import NotEvaluable
from tenfold.latency import diagnosis, memory, preconditions, proposing
from tenfold.latency.comparing import Comparison, Row
from tenfold.latency.records import Interval
from tenfold.latency.steps import s2_lengths, s3_cache, s4_scheduling, s6_hardware, s7_upstream
from tenfold.latency.windows import Share
from tenfold.reviewing import diagnosed
from tenfold.store.schema import REQUESTS

START = datetime(2026, 9, 8, tzinfo=UTC)
COUNT = 900
RUNBOOK = Path(__file__).parents[2] / "notebooks" / "RUNBOOK.md"


def requests(place, *, answer=100, count=COUNT):
    """Requests of a quarter of an hour, a second apart; each answer takes 10 ms a token."""
    rng = np.random.default_rng(place)
    start = START + timedelta(seconds=COUNT * place)
    output = np.ceil(rng.gamma(4, answer / 4, count)).astype(int)
    ttft_ms = rng.gamma(9, 20, count).round().astype(int)
    return pl.DataFrame(
        {
            "request_id": [f"{place}-{n}" for n in range(count)],
            "ts": [start + timedelta(seconds=n) for n in range(count)],
            "provider": "self-hosted",
            "model": "m",
            "team": "search",
            "input_tokens": np.full(count, 500),
            "output_tokens": output,
            "ttft_ms": ttft_ms,
            "duration_ms": ttft_ms + 10 * (output - 1),
            "status": "success",
            "is_stream": True,
        }
    )


def window(place):
    since, until = (START + timedelta(seconds=COUNT * n) for n in (place, place + 1))
    return f"u.duckdb@{since:%Y-%m-%dT%H:%MZ}..{until:%Y-%m-%dT%H:%MZ}"


BEFORE, LONGER, SAME, BARE, OTHER = (window(place) for place in range(5))


@pytest.fixture(scope="module")
def made_db(main_in, tmp_path_factory):
    """Quarters of an hour: one, with answers three times as long, as the first, without latencies, another model."""
    folder = tmp_path_factory.mktemp("diagnose")
    quarters = [
        requests(0),
        requests(1, answer=300),
        requests(2),
        requests(3).with_columns(ttft_ms=pl.lit(None, pl.Int64)),
        requests(4).with_columns(model=pl.lit("n")),
    ]
    for place, frame in enumerate(quarters[:2]):
        frame.write_parquet(folder / f"{place}.parquet")
    pl.concat(quarters).write_parquet(folder / "all.parquet")
    with contextlib.redirect_stdout(io.StringIO()):
        assert main_in(folder, "load", "all.parquet", "--db", "u.duckdb") == 0
    return folder


@pytest.fixture
def run(made_db, run, monkeypatch):
    """Run a command where the logs are; what it writes goes elsewhere."""
    monkeypatch.chdir(made_db)
    return run


def test_a_cause_is_explained_with_what_to_do(run):
    code, out, err = run("diagnose", "--before", BEFORE, "--after", LONGER)
    assert (code, err) == (0, "")
    assert out.startswith("Explained: longer answers (search), ")
    assert "\nbefore  900 requests, 2026-09-08 00:00:00 to 2026-09-08 00:15:00 UTC" in out
    share = r"^1  Step 2, longer answers \(search\) +\d+ % \[\d+, \d+\] of the output shift"
    assert re.search(share, out, re.MULTILINE)
    assert "(no change)" in out
    assert "not separable  3 prefix cache (needs cache_read_tokens)" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.full
def test_the_document_has_the_keys_that_scripts_rely_on(as_json):
    found = as_json("diagnose", "--before", "0.parquet", "--after", "1.parquet")
    assert found["verdict"] == "explained"
    assert found["causes"][0]["step"] == 2
    assert found["causes"][0]["component"] == "output"
    assert found["shift"]["output_p95_tokens"]["is_change"]
    assert found["refused"] is None


@pytest.mark.full
def test_the_page_needs_no_network(as_json, tmp_path):
    page = tmp_path / "p99.html"
    found = as_json("diagnose", "--before", BEFORE, "--after", LONGER, "--out", page)
    assert found["out"] == str(page)
    html = page.read_text(encoding="utf-8")
    assert "Explained: longer answers (search)" in html
    assert html.count("<svg") == 3
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", html)


def test_the_answer_is_there_before_the_page_is_drawn(run, monkeypatch):
    def fails(*_):
        raise NotEvaluable("no page")

    monkeypatch.setattr(diagnosed, "diagnosis_page", fails)
    code, out, err = run("diagnose", "--before", BEFORE, "--after", LONGER, "--out", "x.html")
    assert code == 3
    assert out.startswith("Explained: longer answers (search), ")
    assert "no page" in err


def test_without_latencies_it_is_refused_with_the_columns_that_are_missing(run):
    code, out, err = run("diagnose", "--before", BEFORE, "--after", BARE)
    assert code == 3
    assert out.startswith("No diagnosis: ")
    assert "\nmeasure  log ttft_ms" in out
    assert err == "error: no diagnosis: why, and what would help, is said above\n"


def test_whose_latencies_are_looked_at_is_said(run, as_json):
    words = ("diagnose", "--before", BEFORE, "--after", SAME, "--where", "team = 'search'")
    out = run(*words)[1]
    assert re.search(r"^where +team = 'search'", out, re.MULTILINE)
    assert "Note: Looked at: requests where team = 'search' (100 % of those before" in " ".join(out.split())
    assert any("team = 'search'" in note for note in as_json(*words)["notes"])


@pytest.mark.full
def test_another_model_is_refused(as_json):
    found = as_json("diagnose", "--before", BEFORE, "--after", OTHER, code=3)
    assert found["verdict"] == "refused"
    assert "model changed" in found["refused"]


def test_windows_that_are_alike_have_no_change_and_exit_0(run):
    code, out, _ = run("diagnose", "--before", BEFORE, "--after", SAME)
    assert code == 0
    assert out.startswith("No change: at p95, ")


@pytest.mark.full
def test_windows_around_an_instant_are_shown_as_a_command(run, as_json):
    code, out, _ = run("diagnose", "--db", "u.duckdb", "--around", "2026-09-08T00:15", "--where", "team = 'search'")
    assert code == 0
    command = re.search(r"tenfold diagnose .*?(?=\nor|\n\n)", out, re.DOTALL)[0].replace("\\\n", " ")
    again = as_json(*shlex.split(command)[1:])
    assert again["causes"][0]["step"] == 2
    assert again["windows"]["before"]["from"] == "2026-09-08T00:00:00+00:00"


def test_find_says_what_it_needs_or_that_nothing_changed(run, as_json, monkeypatch):
    code, _, err = run("diagnose", "--db", "u.duckdb", "--find", "--where", "ts < '2026-09-08 00:30'")
    assert code == 3
    assert "1,200 are missing" in err
    monkeypatch.setattr(proposing, "find", lambda *_, **__: None)
    assert as_json("diagnose", "--db", "u.duckdb", "--find")["verdict"] == "no_change"
    assert "--around T" in run("diagnose", "--db", "u.duckdb", "--find")[1]


@pytest.mark.full
def test_two_systems_side_by_side(as_json):
    found = as_json("diagnose", "--compare", "--before", BEFORE, "--after", LONGER)
    rows = {(row["component"], row["quantile"]): row for row in found["quantiles"]}
    assert {component for component, _ in rows} == {"ttft", "tpot", "output", "e2e"}
    middle = rows["output", 0.5]
    for side, answer, place in (("before", 100, 0), ("after", 300, 1)):
        exact = requests(place, answer=answer)["output_tokens"].median()
        assert middle[side]["mid"] == pytest.approx(exact, rel=0.02)
        assert middle[side]["low"] <= middle[side]["mid"] <= middle[side]["high"]


def test_a_comparison_on_the_screen(capsys):
    row = Row("ttft", 0.99, Interval(0.8, 0.84, 0.9), Interval(1.7, 1.91, 2.1), Interval(2.0, 2.27, 2.5))
    tokens = Row("output", 0.5, Interval(95, 100, 104), Interval(290, 300, 311), Interval(2.8, 3, 3.2))
    found = Comparison((1_000, 2_000), (row, tokens), {"ttft": 0.7, "output": 0.3}, 0.99, ("a note",))
    diagnose_screen.show_comparison(Screen(), found)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "A: 1,000 requests, B: 2,000 requests; no cause is sought",
        "",
        "A [95 %] B [95 %] B / A [95 %]",
        "TTFT p99 0.84 s [0.80, 0.90] 1.91 s [1.70, 2.10] 2.27 [2.00, 2.50]",
        "output p50 100 tokens [95, 104] 300 tokens [290, 311] 3.00 [2.80, 3.20]",
        "",
        "Of the difference of the slow requests' time (around p99 of E2E): TTFT 70 %, output 30 %",
        "Note: a note",
    ]


def test_models_in_turn_and_their_mix(capsys):
    diagnose_screen.show_mix(Screen(), [Share("m", 900, 600, 0.9, 0.6), Share("n", 100, 400, 0.1, 0.4)])
    out = capsys.readouterr().out
    diagnose_screen.show(Screen(), made.no_change(), is_one_of_several=True)
    assert capsys.readouterr().out.startswith("llama-3.1-70b: No change: ")
    assert out.splitlines()[-1].split() == ["n", "100", "400", "10.0", "%", "40.0", "%"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name two windows"),
        (("--before", "a"), "--after is missing"),
        (("--after", "a"), "--before is missing"),
        (("--find",), "--db FILE"),
        (("--around", "2026-09-08"), "--db FILE"),
        (("--db", "a"), "--around T"),
        (("--db", "a", "--find", "--around", "2026-09-08"), "one of them"),
        (("--db", "a", "--before", "a"), "name two windows"),
        (("--compare", "--before", "a", "--after", "b", "--out", "x.html"), "no cause"),
        (("--before", "a", "--after", "b", "--set", "x"), "COLUMN=VALUE"),
    ],
)
def test_what_is_asked_for_badly_is_refused_with_the_way_out(run, words, says):
    code, out, err = run("diagnose", *words)
    assert (code, out) == (1, "")
    assert says in err


def shown(capsys, one, width):
    screen = Screen()
    screen.console.width = width
    diagnose_screen.show(screen, one)
    return capsys.readouterr().out


@pytest.mark.parametrize("make", made.ALL, ids=lambda make: make.__name__)
@pytest.mark.parametrize("width", [60, 100])
def test_every_diagnosis_fits_the_screen(capsys, make, width):
    out = shown(capsys, make(), width)
    assert max(map(len, out.splitlines())) <= width
    for cause in make().causes:
        assert f"Step {cause.step}, {cause.name}" in " ".join(out.split())


def test_consequences_stand_under_their_cause(capsys):
    lines = [line.rstrip() for line in shown(capsys, made.lost_host(), 100).splitlines()]
    heads = [line for line in lines if "Step" in line]
    assert heads == [
        "1  Step 6, host lost (gpu-03)                    92 % [81, 100] of the TTFT shift",
        "   └  Step 4, queueing                           60 % [52, 69] of the shift, a consequence of step 6",
        "   └  Step 7, retries                            32 % [24, 40] of the shift, a consequence of step 6",
    ]
    assert "unexplained  8 % of the TTFT shift and 12 % of the TPOT shift" in lines


def test_the_runbook_names_options_and_columns_that_exist(run):
    """One page that is read at night: what it says to type must work."""
    text = RUNBOOK.read_text(encoding="utf-8")
    assert len(text) < 5_500  # a printed page
    help_text = "".join(run(*words, "--help")[1] for words in (("diagnose",), ("levers",), ("serving", "simulate")))
    for option in set(re.findall(r"--[a-z]+", text)):
        assert option in help_text, option
    columns = {column.name for column in REQUESTS}
    for line in re.findall(r"\*\*needs\*\* (.*)", text):
        for name in re.findall(r"`([a-z_]+)`", line):
            assert name in columns, name
    assert [int(number) for number in re.findall(r"^### (\d) ", text, re.MULTILINE)] == [1, 2, 3, 4, 5, 6, 7]


def test_the_numbers_of_the_runbook_are_those_that_decide():
    text = RUNBOOK.read_text(encoding="utf-8")
    needed = dict(preconditions.NEEDED)
    for said in (
        f"{needed[0.99]:,} requests ({needed[0.95]} for p95)",
        f"moved by {s2_lengths._LENGTH:.0%}",
        f"fell by {s3_cache.LEAST_FALL * 100:.0f} points",
        f"or {s3_cache.LEAST_COLD:.0%} of requests newly find nothing",
        f"wait is {s4_scheduling.QUEUE_SHARE:.0%} of the TTFT tail",
        f"preemptions {s4_scheduling.PREEMPTION_RATIO:g} times as many",
        f"{memory._FULL:.0%} of KV in use",
        f"a replica {np.exp(s6_hardware.SLOW) - 1:.0%} slower",
        f"false discovery rate of {s6_hardware.RATE:.0%}",
        f"repeats up by {s7_upstream.LEAST_RISE * 100:.0f} points",
        f"above {diagnosis._UNEXPLAINED:.0%} unexplained",
    ):
        assert said.replace("%", " %") in text, said
