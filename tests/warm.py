"""A process that has tenfold imported and forks a child for each load, so that many can be killed cheaply."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

_SERVER = """
import os, sys
from tenfold.logs import load, loading
import polars, duckdb
print("ready", flush=True)
for line in sys.stdin:
    db, kind, *files = line.rstrip("\\n").split("\\t")
    pid = os.fork()
    if pid == 0:
        if kind == "commit":
            # after the commit and before the file is closed, which would move the write-ahead log into it
            loading.Log = lambda *_, **__: os._exit(9)
        try:
            for file in files:
                load(file, db=db, thresholds=())
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Warm:
    """Loads in children of one process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def start(self, db: object, *files: object, kind: str = "whole") -> int:
        """Start a load; the child's process id."""
        assert self.process.stdin is not None
        self.process.stdin.write("\t".join(map(str, (db, kind, *files))) + "\n")
        self.process.stdin.flush()
        return int(self._line())

    def wait(self) -> int:
        """How the child ended: its exit code, or minus the signal."""
        return int(self._line())


@contextmanager
def warm():
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as one:
        assert one.stdout is not None
        assert one.stdout.readline().strip() == "ready"
        try:
            yield Warm(one)
        finally:
            one.stdin.close()
            one.wait()
