"""What Tab offers, and that a shell gets it."""

import pytest

from tenfold.cli import completion, main


def test_columns_go_on_behind_a_comma_and_come_once():
    assert {"team,month", "team,model"} <= set(completion.columns("team,mo"))
    assert "team,team" not in completion.columns("team,te")
    assert completion.columns("input_tok") == []  # nothing to group by


def test_names():
    assert "openai_chat" in completion.formats("openai_")
    assert completion.formats("nothing") == []
    assert "gpt-4.1" in completion.models("gpt-4")
    assert completion.providers("anth") == ["anthropic"]
    assert "Europe/Berlin" in completion.zones("Europe/B")
    assert len(completion.quarters("")) == 8
    assert all(one.startswith("2") and "Q" in one for one in completion.quarters(""))


@pytest.mark.parametrize(
    ("typed", "offered"), [("tenfold co", "cost"), ("tenfold load x --format anthropic_m", "anthropic_messages")]
)
def test_a_shell_is_told(monkeypatch, capsys, typed, offered):
    monkeypatch.setattr("sys.argv", ["tenfold"])
    monkeypatch.setenv("_TENFOLD_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    with pytest.raises(SystemExit):
        main()
    assert offered in capsys.readouterr().out.split()
