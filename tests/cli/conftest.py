"""Commands run in process, in an empty folder."""

import contextlib
import json
import sys

import pytest

from tenfold.cli import main


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    """Leave out the width that pytest's workers say: it is nobody's terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def main_in():
    """Run a command in a folder, for what several tests begin with; gives the exit code."""

    def call(folder, *words):
        with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys, "argv", ["tenfold", *(str(word) for word in words)])
            try:
                main()
            except SystemExit as ended:
                return ended.code or 0
            return 0

    return call


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command; gives exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["tenfold", *(str(word) for word in words)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def as_json(run):
    def call(*words, code=0):
        found, out, err = run(*words, "--json")
        assert found == code, err
        document = json.loads(out)
        assert document["schema_version"] == 1
        return document

    return call
