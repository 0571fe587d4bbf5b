"""Whose turn it is on a database file: among the threads of a process, and among processes.

DuckDB locks the file, so nobody reads half a load. It has no queue, though: readers that overlap would keep a writer
out for ever, and loads that follow each other a reader. Who must wait says so in a file beside the database, and those
that come later let it go first. DuckDB's lock is also one that a process loses whole when it closes any other handle of
the file (POSIX ``fcntl``), and a second connection of a process must not differ from the first; so its threads take
turns here.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tenfold.errors import LockedError

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None

_SAID = logging.getLogger(__name__)
# Seconds until a wait is told; the longest pause between two looks, which bounds what a free moment costs.
_TOLD_AFTER_S, _FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.5, 0.01, 0.2
_HOLDER = re.compile(r"held in (?P<exe>\S+)(?: \(deleted\))? \(PID (?P<pid>\d+)\)")


class Wait:
    """One wait for a file: bounded, told when it becomes long, and explained when it was in vain.

    Args:
        path: The database.
        limit_s: Seconds to wait at most.
        read_only: What is waited for.
    """

    def __init__(self, path: Path, limit_s: float, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self.limit_s = limit_s
        self.since_ns = time.time_ns()
        self._began = time.monotonic()
        self._pause_s = _FIRST_PAUSE_S
        self._is_told = False

    def step(self, who: str, advice: str) -> float:
        """Say how long to pause before the next look.

        Args:
            who: Who has the file: the beginning of a sentence.
            advice: The way out.

        Returns:
            Seconds.

        Raises:
            LockedError: The wait is over; names who, how long, and the way out.
        """
        waited = time.monotonic() - self._began
        if waited >= self.limit_s:
            raise LockedError(f"{self.path} {who}. Waited {self.limit_s:g} s. {advice}")
        if not self._is_told and waited >= _TOLD_AFTER_S:
            self._is_told = True
            _SAID.warning("%s %s: waiting, up to %g s", self.path, who, self.limit_s)
        pause = min(self._pause_s, self.limit_s - waited)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return pause

    def step_for(self, message: str) -> float:
        """Say how long to pause where DuckDB found the file locked.

        Args:
            message: What DuckDB said.

        Returns:
            Seconds.

        Raises:
            LockedError: The wait is over.
        """
        found = _HOLDER.search(message)
        who = process(int(found["pid"]), Path(found["exe"]).name) if found else "another process"
        done = "written" if self.read_only else "used"
        advice = (
            "For readers that never wait: tenfold publish"
            if self.read_only
            else "A reader that stays open keeps every load out"
        )
        return self.step(
            f"is being {done} by {who}",
            f"Try again when it is done, or close that process (an open notebook counts). {advice}. "
            "lock_timeout_s in tenfold.toml is how long to wait",
        )

    def step_behind(self, who: str) -> float:
        """Say how long to pause where somebody waits who came before.

        Args:
            who: The process.

        Returns:
            Seconds.

        Raises:
            LockedError: The wait is over.
        """
        return self.step(
            f"is waited for by {who}, which came first and waits for whoever has it open",
            "Close what holds it (an open notebook counts), or try again. For readers that never wait: tenfold publish",
        )


def process(pid: int, program: str) -> str:
    """Name a process so that a person knows it: its script or module, never its arguments, which may hold secrets.

    Args:
        pid: Its id.
        program: Name of its executable.

    Returns:
        Text such as ``PID 4711, python3.11 (ipykernel_launcher, a notebook)``.
    """
    named = f"PID {pid}, {program}"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    except OSError:  # no such folder on this system, or another user's
        return named
    script = _script(words[1:])
    if not script or script == program:
        return named
    return f"{named} ({script}{', a notebook' if 'ipykernel' in script else ''})"


def _script(arguments: list[str]) -> str:
    """Name the module or script that an interpreter runs."""
    for at, word in enumerate(arguments):
        if word == "-m" and at + 1 < len(arguments):
            return arguments[at + 1]
        if word and not word.startswith("-"):
            return Path(word).name
        if word.startswith("-c"):
            return ""
    return ""


class Gate:
    """The threads of this process that have one file open: any number that read, or one that writes."""

    def __init__(self) -> None:
        self.connecting = threading.Lock()
        """Held to look into the file or to connect, so that no closed handle takes another's lock away."""
        self.connections = 0
        """How many connections the process has to the file; they change while `connecting` is held."""
        self._changed = threading.Condition()
        self._readers: Counter[int] = Counter()
        self._writer: int | None = None
        self._writers_waiting = 0

    def reads(self) -> bool:
        """Tell whether this thread reads already: it then goes on, whoever waits, or both would wait for ever."""
        return self._readers[threading.get_ident()] > 1

    @contextmanager
    def held(self, wait: Wait) -> Generator[None]:
        """Wait for this thread's turn, and have it.

        Args:
            wait: The wait.

        Yields:
            Nothing.

        Raises:
            LockedError: This thread has the file open otherwise, or another thread still has it.
        """
        me = threading.get_ident()
        with self._changed:
            self._enter(me, wait)
        try:
            yield
        finally:
            with self._changed:
                if wait.read_only:
                    self._readers[me] -= 1
                    self._readers += Counter()  # those at zero go
                else:
                    self._writer = None
                self._changed.notify_all()

    def _enter(self, me: int, wait: Wait) -> None:
        if self._writer == me or (not wait.read_only and self._readers[me]):
            has = "written" if self._writer == me else "read"
            raise LockedError(
                f"{wait.path} is being {has} by this very thread. Leave that `with` block first "
                "(store.reading(), store.writing(), ledger.session(), log.engine())"
            )
        if wait.read_only:
            while self._writer is not None or (self._writers_waiting and not self._readers[me]):
                self._pause(wait, "written")
            self._readers[me] += 1
            return
        self._writers_waiting += 1
        try:
            while self._writer is not None or self._readers:
                self._pause(wait, "used")
            self._writer = me
        finally:
            self._writers_waiting -= 1

    def _pause(self, wait: Wait, done: str) -> None:
        who = f"is being {done} by another thread of this process"
        self._changed.wait(wait.step(who, "Let that thread leave its `with` block first, or wait longer"))


_GATES: dict[str, Gate] = {}
_MAKING = threading.Lock()


def gate_of(path: Path) -> Gate:
    """Give the gate of a file.

    Args:
        path: The database, by whatever name.

    Returns:
        Its gate, one for the process.
    """
    with _MAKING:
        return _GATES.setdefault(os.path.realpath(path), Gate())


class Queue:
    """What the first who waits says to other processes: ``DB.waiting``, locked by it for as long as it waits.

    Where no such file can be made (a folder that is read only, a system without ``flock``) there is no queue, and who
    looks first goes first.

    Args:
        wait: The wait.
    """

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self.file = wait.path.with_name(f"{wait.path.name}.waiting")
        self._handle: int | None = None

    def ahead(self) -> str:
        """Name a process that waits and came before.

        Returns:
            The process; empty where there is none.
        """
        if fcntl is None or self._handle is not None:
            return ""
        try:
            handle = os.open(self.file, os.O_RDONLY)
        except OSError:
            return ""
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            came_first = os.fstat(handle).st_mtime_ns <= self.wait.since_ns
            pid = os.read(handle, 20).decode(errors="replace")
            return (process(int(pid), "tenfold") if pid.isdecimal() else "another process") if came_first else ""
        except OSError:
            return ""
        finally:
            os.close(handle)
        return ""

    def enter(self) -> None:
        """Say that this process waits, unless another says so already."""
        if fcntl is None or self._handle is not None:
            return
        try:
            handle = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError:
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_ino != self.file.stat().st_ino:  # the one before has just taken the file away
                raise BlockingIOError
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
            os.utime(handle, ns=(self.wait.since_ns, self.wait.since_ns))
        except OSError:
            os.close(handle)
        else:
            self._handle = handle

    def leave(self) -> None:
        """Take the word back."""
        if self._handle is not None:
            with suppress(OSError):
                self.file.unlink()
            os.close(self._handle)
            self._handle = None
