"""Where logs live: files and folders, standard input and pipes, object stores, LiteLLM's database.

The load reads files. What lives elsewhere becomes a temporary file first, under the name that the database calls it.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from threading import Event
from typing import IO, cast

from tenfold.logs import files
from tenfold.logs.sources import cloud, postgres, spool
from tenfold.logs.sources.base import Mark, Source, SourceError
from tenfold.logs.sources.known import Known, move

__all__ = ["Known", "Mark", "Paths", "Source", "SourceError", "Sources", "move", "opened"]

Place = str | Path | IO[bytes]
Paths = Place | Iterable[Place]
# Objects that are fetched while the one before them is read.
_AHEAD = 2


class Sources:
    """The files of a load.

    Args:
        folder: Gives the folder for what is fetched.
        known: What the database holds.
    """

    def __init__(self, folder: Path, known: Known) -> None:
        self._folder = folder
        self._known = known
        self._objects: list[cloud.Object] = []
        self._fetching: Generator[Source] | None = None
        self.here: list[Source] = []
        self.loads: list[int] = []

    @property
    def count(self) -> int:
        """How many files the load is asked for, those included that need no fetching."""
        return len(self.here) + len(self._objects) + len(self.loads)

    @property
    def marks(self) -> list[Mark]:
        """How far sources have been read when all is loaded."""
        return [source.mark for source in self.here if source.mark]

    def add(self, place: Place) -> None:
        """Take in one place that the user named, which is no file or folder.

        Args:
            place: URL, ``-``, pipe or open file.
        """
        if not isinstance(place, str | Path):
            self.here.append(spool.stream(place, _name_of(place), self._folder))
        elif str(place) == spool.STDIN:
            self.here.append(spool.stdin(self._folder))
        elif postgres.is_url(str(place)):
            self.here.append(postgres.read(str(place), self._folder, self._known.mark))
        elif cloud.is_url(str(place)):
            self._take(cloud.find(str(place)))
        else:
            self.here.append(spool.pipe(Path(place), self._folder))

    def _take(self, found: list[cloud.Object]) -> None:
        taken = {one.name for one in self._objects}
        for one in found:
            load_id = self._known.load(one.name, one.version)
            if load_id is not None:
                self.loads.append(load_id)
            elif one.name not in taken:
                self._objects.append(one)

    def fetched(self) -> Generator[Source]:
        """Fetch the objects that are not known, a few ahead; a file is gone when the next one is asked for.

        Returns:
            Their files, one after the other.

        Raises:
            SourceError: One of them cannot be read.
        """
        self._fetching = self._fetch()
        return self._fetching

    def _fetch(self) -> Generator[Source]:
        waiting, over = iter(self._objects), Event()
        queue: deque[Future[Source]] = deque()
        with ThreadPoolExecutor(_AHEAD) as pool:

            def ask(number: int) -> None:
                for one in islice(waiting, number):
                    queue.append(pool.submit(cloud.fetch, one, self._folder, over.is_set))

            try:
                ask(_AHEAD)
                while queue:
                    source = queue.popleft().result()
                    ask(1)
                    yield source
                    source.file.unlink()
            finally:
                over.set()
                pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """Stop fetching."""
        if self._fetching is not None:
            self._fetching.close()


@contextmanager
def opened(paths: Paths, known: Known) -> Generator[Sources]:
    """Find what paths, URLs and streams name, and keep what is fetched until the load is done.

    Args:
        paths: Files, globs, folders; ``-`` for standard input, pipes, files open for reading bytes; URLs of object
            stores and of LiteLLM's database.
        known: What the database holds.

    Yields:
        The files: those on this machine now, and those that are fetched one after the other.

    Raises:
        LogFormatError: One of them names nothing.
        SourceError: One of them cannot be read.
    """
    given = cast("list[Place]", [paths] if isinstance(paths, str | Path) or hasattr(paths, "read") else list(paths))
    elsewhere = [place for place in given if _is_elsewhere(place)]
    local = [place for place in given if isinstance(place, str | Path) and not _is_elsewhere(place)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) if elsewhere else Path()
        sources = Sources(folder, known)
        stack.callback(sources.close)
        if local or not elsewhere:
            named = {Path(place) for place in local}
            sources.here += (Source(str(file), file, is_found=file not in named) for file in files.find(local))
        for place in elsewhere:
            sources.add(place)
        yield sources


def _is_elsewhere(place: Place) -> bool:
    if not isinstance(place, str | Path):
        return True
    text = str(place)
    return text == spool.STDIN or cloud.is_url(text) or postgres.is_url(text) or spool.is_pipe(Path(place))


def _name_of(stream: IO[bytes]) -> str:
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else "stream"
