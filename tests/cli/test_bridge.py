"""``tenfold bridge``: two periods from the command line."""

import csv
import json
from datetime import datetime

import pytest

PRICES = """
provider = "openai"
[[price]]
model = "m-one"
input = 5
output = 5
source = "test"
checked = 2026-01-01
[[price]]
model = "m-one"
valid_from = 2026-07-01
input = 4
output = 4
source = "test"
checked = 2026-01-01
[[price]]
model = "m-two"
input = 0.5
output = 0.5
source = "test"
checked = 2026-01-01
"""


@pytest.fixture(scope="module")
def loaded(main_in, tmp_path_factory):
    """A hundred requests in Q2, two hundred in Q3, of a million tokens each: the worked example."""
    folder = tmp_path_factory.mktemp("bridge")
    (folder / "pricing").mkdir()
    (folder / "pricing" / "openai.toml").write_text(PRICES)
    months = {5: {"m-one": 80, "m-two": 20}, 8: {"m-one": 90, "m-two": 110}}
    with (folder / "log.csv").open("w", newline="") as file:
        write = csv.writer(file)
        write.writerow(["request_id", "ts", "provider", "model", "input_tokens", "output_tokens", "team"])
        for month, models in months.items():
            for model, many in models.items():
                for n in range(many):
                    ts = datetime(2026, month, 1 + n % 28).isoformat()
                    write.writerow([f"{month}{model}{n}", ts, "openai", model, 1_000_000, 0, "x" if n % 2 else ""])
    assert main_in(folder, "load", "log.csv", "--db", "u.duckdb") == 0
    return folder


@pytest.fixture
def bridge(run, loaded):
    def call(*words):
        prices = ("--prices", loaded / "pricing", "--prices-only")
        return run("bridge", "--db", loaded / "u.duckdb", *prices, *words)

    return call


def test_the_quarter_against_the_one_before(bridge):
    code, out, err = bridge("--quarter", "2026Q3")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("$410.00 -> $415.00   +$5.00 (+1.2 %)   prices ")
    assert [line.split()[:2] for line in lines[5:9]] == [
        ["volume", "+$410.00"], ["intensity", "$0.00"], ["mix", "-$315.00"], ["price", "-$90.00"],
    ]  # fmt: skip
    assert "mix: model -$315.00 · service tier $0.00 · kind of token $0.00" in lines
    assert max(map(len, lines)) <= 100


def test_a_narrow_screen_leaves_out_the_smallest_bar(bridge, monkeypatch):
    monkeypatch.setenv("COLUMNS", "48")
    # half as much again before: volume +205, mix -315, price -90
    _, out, _ = bridge("--quarter", "2026Q3", "--by", "model", "--scale", "3/2")
    (heads,) = [line.split() for line in out.splitlines() if line.startswith("model ")]
    assert heads[-1] == "mix"
    assert "volume" not in heads
    assert "left out to fit 48 columns" in out


@pytest.mark.full
def test_two_periods_as_json(bridge):
    periods = ("--before", "2026-05-01..2026-06-01", "--after", "2026-08-01..2026-09-01")
    code, out, _ = bridge(*periods, "--where", "team=(none)", "--by", "model", "--method", "bennet", "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["method"], document["by"], document["where"]) == ("bennet", ["model"], {"team": None})
    assert (document["before"]["requests"], document["after"]["requests"]) == (50, 100)
    assert document["change_usd"] == "2.50"
    code, out, _ = bridge(*periods, "--scale", "1/2", "--json")
    assert json.loads(out)["before"]["usd"] == "205.00"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--before", "2026-05-01..2026-06-01"), 1, "name two periods"),
        (("--quarter", "2026Q3", "--after", "a..b"), 1, "name two periods"),
        (("--before", "2026-05-01", "--after", "2026-08-01..2026-09-01"), 1, "write two days, the second not in it"),
        (("--quarter", "2026Q3", "--where", "team"), 1, "write COLUMN=VALUE"),
        (("--quarter", "2026Q3", "--scale", "half"), 1, "write a number such as 1/28"),
        (("--quarter", "2026Q3", "--by", "modle"), 1, 'Did you mean "model"'),
        (("--quarter", "2026Q2"), 3, "no request with a price in the period before (2026-01-01 to 2026-04-01"),
    ],
)
def test_what_is_refused(bridge, words, code, says):
    found, out, err = bridge(*words)
    assert (found, out) == (code, "")
    assert says in err
