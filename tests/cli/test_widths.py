"""What is wider than the screen: tables give way in columns of text, commands break so that they can be pasted."""

import shlex

import pytest

from tenfold.cli.common import Screen, plain_table, shell


def printed(capsys, width, show):
    screen = Screen()
    screen.console.width = width
    show(screen)
    return capsys.readouterr().out.rstrip("\n").split("\n")


def test_columns_of_text_wrap_and_names_stay_whole(capsys):
    name, text = "a-name-of-thirty-characters-xxx", "words that say why " * 4
    table = plain_table(("name", False), ("USD", True), ("why", False), wraps=("why",))
    table.add_row(name, "1,000.00", text)
    lines = printed(capsys, 60, lambda screen: screen.table(table))
    assert max(map(len, lines)) <= 60
    assert name in lines[1]
    assert " ".join(" ".join(line[43:] for line in lines[1:]).split()) == text.strip()
    # narrower than name and figure: those are whole, and the rest keeps ten columns
    narrow = printed(capsys, 20, lambda screen: screen.table(table))
    assert name in narrow[1]
    assert "1,000.00" in narrow[1]


def test_a_command_breaks_with_backslashes_and_pastes_as_it_was(capsys):
    where = "provider = 'self-hosted'"
    words = [
        "tenfold",
        "run",
        "--where",
        where,
        "--db",
        "a b.duckdb",
        "--flag",
        "--",
        "x$y",
        *(["--more", "value"] * 9),
    ]
    lines = printed(capsys, 50, lambda screen: screen.command(" ".join(map(shell, words))))
    assert len(lines) > 2
    assert max(map(len, lines)) <= 50
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert not any(line.rstrip(" \\").endswith("--more") for line in lines)
    assert shlex.split("\n".join(lines).replace("\\\n", " ")) == words


@pytest.mark.parametrize("word", ["plain", "provider='x'", 'a "quoted" $word\'s', "", "a`b`", "x!'y", "back\\slash'"])
def test_a_shell_reads_words_as_they_were(word):
    assert shlex.split(shell(word)) == [word]


def wide(columns=("name", "requests", "cost", "share", "output"), **more):
    table = plain_table(*((name, name != "name") for name in columns), **more)
    table.add_row("planner-agent", *(f"{number},000,000.00" for number in range(1, len(columns))))
    return table


def test_the_least_needed_columns_are_left_out_and_named(capsys):
    made = wide(spare=["output", "requests"])
    lines = printed(capsys, 60, lambda screen: screen.table(made))
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["name", "requests", "cost", "share"]
    assert lines[1].split() == ["planner-agent", "1,000,000.00", "2,000,000.00", "3,000,000.00"]
    assert " ".join(lines[2:]).startswith("left out to fit 60 columns: output (")
    narrower = printed(capsys, 50, lambda screen: screen.table(made))
    assert narrower[0].split() == ["name", "cost", "share"]
    assert "requests, output" in " ".join(narrower[2:])  # as they stand in the table
    whole = printed(capsys, 100, lambda screen: screen.table(made))
    assert whole[0].split() == ["name", "requests", "cost", "share", "output"]
    assert len(whole) == 2


def test_without_a_word_the_last_figures_go_first_and_one_stays(capsys):
    lines = printed(capsys, 30, lambda screen: screen.table(wide()))
    assert lines[0].split() == ["name", "requests"]


def test_what_must_stay_wraps_behind_the_first_name(capsys):
    table = plain_table(("team", False), ("feature", False), ("cost", True))
    table.add_row("a-team-with-a-name", "a-feature-of-thirty-characters", "$1.00")
    lines = printed(capsys, 40, lambda screen: screen.table(table))
    assert max(map(len, lines)) <= 40
    assert "a-team-with-a-name" in lines[1]
    assert "".join(line[20:].split("$")[0].strip() for line in lines[1:]) == "a-feature-of-thirty-characters"


def test_columns_say_how_wide_a_pipe_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    assert Screen().console.width == 140
    monkeypatch.setenv("COLUMNS", "wide")
    assert Screen().console.width == 100
