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
