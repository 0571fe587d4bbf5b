"""Loading logs: find, detect, read strictly, check, fold repeats, insert; all files of a call or none of them."""

from __future__ import annotations

from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from tenfold import config
from tenfold.errors import LogFormatError, near
from tenfold.logs import mapped, sources
from tenfold.logs.constants import constant
from tenfold.logs.filling import Load
from tenfold.logs.log import Log, Unread
from tenfold.logs.plans import fetched, plans, settings_of
from tenfold.logs.text.columns import Texts
from tenfold.store import schema
from tenfold.store.database import Store
from tenfold.store.published import check_writable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tenfold.logs.progress import Progress

# Columns that a load may state for all its rows: who, what and where, never a count, an id or a time.
SETTABLE = (
    *(c.name for c in schema.REQUESTS if c.group in {"who", "what", "where"} and c.name != "tags"),
    *("status", "is_billable", "gateway_cache_hit", "session_id", "trace_id"),
)


def load(
    paths: sources.Paths,
    *,
    db: str | Path | None = None,
    format: str | None = None,  # noqa: A002 -- the CLI's word
    map: str | Path | Mapping[str, object] | None = None,  # noqa: A002 -- the CLI's word
    zone: str | None = None,
    set: Mapping[str, str] | None = None,  # noqa: A002 -- the CLI's word
    keep_text: bool = False,
    hashes: bool = True,
    thresholds: Iterable[int] | None = None,
    progress: Progress | None = None,
) -> Log:
    """Load log files into a store; all of them or, on any error, nothing.

    A file already loaded is skipped; a request already known is not counted twice; a line that is no record goes to
    ``rejects`` with its reason.

    Args:
        paths: Files, globs or directories (read recursively, hidden files left out); ``-`` (standard input), pipes,
            files open for reading bytes; ``s3://``, ``gs://`` and ``az://`` URLs; LiteLLM's ``postgresql://`` database.
        db: Database file to load into; None keeps the log in memory.
        format: Name of the format; None detects it from the content.
        map: Map file (TOML), or its content, that says what a table's columns mean.
        zone: Zone that times without an offset mean.
        set: Column -> value for every row, over what the log says.
        keep_text: Keep prompts and answers in the table `texts`, and let excerpts of refused lines show their text.
        hashes: Hash prompts and answers, for the caching levers, and count their tokens where a log has no usage;
            without, texts are not read at all.
        thresholds: Long-context thresholds that the cube keeps apart, beside those it already has; by default
            those of the shipped price book.
        progress: Called before each file, and as its slices are read.

    Returns:
        The log; ``summary`` says what this load did.

    Raises:
        LogFormatError: The format of a file that was named (not only found in a folder or by a glob) is unknown, or
            that of all files, or the map does not fit; nothing was loaded.
        SourceError: A place where logs live cannot be read; nothing was loaded.
    """
    check_writable(db)
    if zone is not None:
        config.zone(zone)
    owners = config.owners()
    constants = _constants(set or {})
    mapping = None if map is None else mapped.read_map(map)
    if mapping is not None and format is not None:
        raise LogFormatError("--format and --map exclude each other: a map is a format of its own")
    known = sources.Known(db, settings_of(format, mapping, zone, constants))
    with sources.opened(paths, known) as found:
        unread: list[Unread] = []
        planned = partial(plans, name=format, mapping=mapping, zone=zone, constants=constants, unread=unread)
        here = planned(found.here)
        later = fetched(found, partial(planned, is_part=True), unread)
        first = list(islice(later, 1))  # what cannot be read at all leaves no database
        store = Store(db)
        with store.writing() as connection:
            texts = Texts(connection, hashes=hashes, keep_text=keep_text)
            session = Load(connection, zone, constants, owners, texts, keep_text=keep_text)
            try:
                summary, limits = session.run(chain(here, first, later), found, thresholds, progress)
                summary["unread"] = unread
                summary["files"] -= len(unread)
                return Log(store, summary, limits)
            finally:
                session.clean()


def _constants(given: Mapping[str, str]) -> dict[str, str]:
    for name in given:
        if name not in SETTABLE:
            raise LogFormatError(f'--set: "{name}" cannot be set.{near(name, SETTABLE)} One of: {", ".join(SETTABLE)}')
    return {name: constant("--set", name, str(value)) for name, value in given.items()}
