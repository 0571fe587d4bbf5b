"""Another process that has a database open, or tries to, as it is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

_PROGRAM = """
import sys
from contextlib import ExitStack
from tenfold.config import Settings
from tenfold.store.database import Store
held = ExitStack()
print("ready", flush=True)
for line in sys.stdin:
    what, db, wait = line.rstrip("\\n").split("\\t")
    try:
        if what == "leave":
            held.close()
        else:
            store = Store(db, limits=Settings(lock_timeout_s=float(wait)))
            held.enter_context(getattr(store, what)())
        print("done", flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
"""


class Other:
    """The process.

    Args:
        process: It.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def does(self, what: str, db: object = "", wait_s: float = 0) -> str:
        """Let it open a database (``reading``, ``writing``) and keep it, or ``leave`` all; "done", or its error."""
        self.asks(what, db, wait_s)
        return self.answer()

    def asks(self, what: str, db: object = "", wait_s: float = 0) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\t{db}\t{wait_s}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def other() -> Generator[Other]:
    """Start one."""
    command = [sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        one = Other(process)
        assert one.answer() == "ready"
        try:
            yield one
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
