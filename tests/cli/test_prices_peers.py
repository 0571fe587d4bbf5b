"""``tenfold prices import`` and ``tenfold prices diff`` as scripts use them."""

import json

import pytest

ROW = {"litellm_provider": "openai", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}
ENTRY = 'provider = "openai"\n[[price]]\nmodel = "gpt-a"\ninput = {}\noutput = 2\nsource = "t"\nchecked = 2026-11-29\n'


@pytest.fixture
def files(tmp_path):
    for name, usd in (("old", 1), ("new", 3)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "openai.toml").write_text(ENTRY.format(usd))
    table = {"gpt-a": ROW, "gpt-b": ROW | {"input_cost_per_pixel": 1e-08}}
    (tmp_path / "t.json").write_text(json.dumps(table))


@pytest.mark.usefixtures("files")
def test_import_prints_a_diff_and_writes_nothing(run, tmp_path):
    code, out, err = run("prices", "import", "litellm", "--from", "t.json", "--prices", "old")
    assert code == 0
    assert out.startswith("--- a/pricing/openai.toml\n+++ b/pricing/openai.toml\n@@")
    assert '+model = "gpt-b"' in out
    assert "2 values equal, 0 differ, 2 only there" in err
    assert "left out, no meter or provider here: input_cost_per_pixel (1)" in err
    assert (tmp_path / "old" / "openai.toml").read_text() == ENTRY.format(1)


@pytest.mark.usefixtures("files")
def test_import_as_json(as_json):
    found = as_json("prices", "import", "litellm", "--from", "t.json", "--prices", "new")
    assert [(one["model"], one["why"], one["differences"]) for one in found["added"]] == [
        ("gpt-a", "changed", {"input": {"from_usd": "3.00", "to_usd": "1"}}),
        ("gpt-b", "new_model", {}),
    ]
    assert found["left_out"] == {"input_cost_per_pixel": 1}
    assert found["files"][0]["file"] == "openai.toml"


def test_import_of_one_provider(run):
    code, out, _ = run("prices", "import", "genai-prices", "--provider", "mistralai")
    assert code == 0
    assert {line for line in out.splitlines() if line.startswith("+++")} == {"+++ b/pricing/mistral.toml"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["genai-price"], 'Did you mean "genai-prices"?'),
        (["genai-prices", "--from", "t.json"], "--from names litellm's price JSON"),
        (["litellm", "--from", "none.json"], "none.json: no such file"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_one_line(run, words, says):
    code, out, err = run("prices", "import", *words)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert says in err


@pytest.mark.usefixtures("files")
def test_diff_of_two_folders(run, as_json):
    found = as_json("prices", "diff", "old", "new")
    assert [(one["meter"], one["from_usd"], one["to_usd"]) for one in found["changed"]] == [("input", "1.00", "3.00")]
    assert (found["added"], found["removed"]) == ([], [])
    code, out, _ = run("prices", "diff", "old", "new")
    assert code == 0
    assert "0 price lists added, 0 removed, 1 rate and 0 names changed" in " ".join(out.split())
    assert as_json("prices", "diff", "shipped", "shipped")["changed"] == []
    code, _, err = run("prices", "diff", "old", "nowhere")
    assert (code, err) == (1, "error: nowhere: no such folder of price files\n")
