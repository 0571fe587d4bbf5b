"""Help that teaches: every command has its place, its examples and, where it reads, --json."""

import shlex

import pytest
from typer.main import get_command

from tenfold.cli import app, guide


def walk(command, path=()):
    for name, one in command.commands.items():
        if hasattr(one, "commands"):
            yield from walk(one, (*path, name))
        else:
            yield " ".join((*path, name)), one


COMMANDS = dict(walk(get_command(app)))


def options(command):
    return {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}


def test_every_command_takes_json():
    assert [name for name, command in COMMANDS.items() if "--json" not in options(command)] == []


def test_every_command_has_a_panel_and_the_panels_keep_the_way_of_work():
    top = get_command(app)
    assert [name for name in top.commands if name not in guide.PANELS] == []
    panels = list(dict.fromkeys(top.get_command(None, name).rich_help_panel for name in top.list_commands(None)))
    assert [panel.split()[0] for panel in panels] == ["Load", "Look", "Decide", "Serve", "Diagnose", "Report"]


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in COMMANDS])
def test_examples_name_the_command_and_options_that_there_are(name):
    examples = guide.EXAMPLES[name]
    assert examples
    command = COMMANDS[name]
    for example in examples:
        # before a pipe stands another program, behind > a file
        words = shlex.split(example.split("| ")[-1].split(" > ")[0])
        path = ["tenfold", *name.split()]
        assert words[: len(path)] == path
        given = words[len(path) :]
        assert [word for word in given if word.startswith("--") and word not in options(command)] == []
        command.make_context(name, list(given), resilient_parsing=True)
        needed = {one.opts[0] for one in command.params if one.required and one.opts[0].startswith("--")}
        assert needed <= set(given)
    assert command.epilog.endswith(examples[-1])


def test_the_help_shows_the_way_on_an_ordinary_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("--help")
    assert code == 0
    steps = ["tenfold load", "tenfold cost", "tenfold levers", "tenfold diagnose", "tenfold review"]
    at = [out.index(step) for step in steps]
    assert at == sorted(at)
    assert "--quarter 2026Q3 --out review.html" in out  # not broken
    for words in ("Look", "Serve on GPUs of your own", "--install-completion"):
        assert words in out
