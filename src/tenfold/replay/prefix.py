"""Prefix caches of providers: how much of each prompt's head an earlier request had left there, within a lifetime."""

from __future__ import annotations

from tenfold.store import steps
from tenfold.store.engines import PREFIX_BLOCKS, Engine


def prefix_touches(engine: Engine, requests: str, name: str, *, blocks: str = PREFIX_BLOCKS) -> None:
    """Find who touches which blocks: the part of a replay that no time changes.

    Args:
        engine: Where the requests are.
        requests: As for ``prefix_reads``; of times, only whether there is a ``ts``.
        name: ``<name>_numbered`` and ``<name>_touches`` are the tables that it makes.
        blocks: As for ``prefix_reads``.
    """
    names = {part: f"{name}_{part}" for part in ("numbered", "blocks", "shared", "ends", "touches")}
    _step(engine, "numbered", names, materialised=True, requests=requests)
    _step(engine, "blocks", names, all_blocks=blocks)
    _step(engine, "shared", names, materialised=True)
    _step(engine, "ends", names)
    _step(engine, "touches", names, materialised=True)


def prefix_reads(engine: Engine, requests: str, name: str, *, blocks: str = PREFIX_BLOCKS, touches: str = "") -> None:
    """Replay prefix caches on cumulative block hashes: pure SQL windows over the last blocks of shared runs.

    A request touches all its blocks when it begins. It reads the longest run of leading blocks of which each was last
    touched at most the lifetime ago, by a request that began strictly before, and had become readable strictly before:
    at the earliest first token among the requests that touched it since it was last absent (no gap between touches
    beyond the lifetime of the later one). Minimums, increments and prices are the caller's.

    Args:
        engine: Where the requests are.
        requests: View with ``rid`` (unique within a combo); ``combo`` (independent what-ifs); ``pool`` (who shares a
            cache; any type that groups; NULL: not replayed); ``ts`` (start; NULL touches and reads nothing);
            ``readable_at`` (first token; NULL: ``ts``); ``lifetime_us`` (idle lifetime in microseconds, inclusive);
            ``request``, ``dropped``, ``reach_blocks``: of that request's blocks, this one touches so many behind the
            dropped ones; 0 touches and reads nothing.
        name: Table to make: ``rid``, ``combo``, ``read_blocks``, a row for every row with a pool.
        blocks: Relation with ``rid`` (a ``request``), ``block_no`` (from 1, fewer than 2^26) and ``hash`` (cumulative,
            none twice in a request); the engine's own by default.
        touches: Name given to ``prefix_touches`` for the same requests, combos, pools and blocks; found here without.
    """
    if not touches:
        prefix_touches(engine, requests, name, blocks=blocks)
    names = {part: f"{name}_{part}" for part in ("timed", "spaced", "resident")}
    names |= {part: f"{touches or name}_{part}" for part in ("numbered", "touches")}
    _step(engine, "timed", names, requests=requests)
    _step(engine, "spaced", names, materialised=True)
    _step(engine, "resident", names)
    steps.run(engine, "replay_prefix_reads", name=name, materialised=True, **names)


def session_reads(engine: Engine, requests: str, name: str) -> None:
    """Replay prefix caches by sessions, for logs without hashes: a turn reads the prompt of the turn before it.

    The turn before is the last of the same combo, pool and session that began strictly before. It is read if it began
    at most the lifetime ago, its first token came strictly before this turn, and this prompt is not shorter.

    Args:
        engine: Where the requests are.
        requests: View with ``rid``, ``combo``, ``pool``, ``ts``, ``readable_at`` and ``lifetime_us`` as for
            ``prefix_reads``; ``session_id`` (NULL reads nothing); ``input_tokens``; ``reaches_tokens``: tokens of the
            prompt that the request touches, 0 or NULL where none.
        name: Table to make: ``rid``, ``combo``, ``read_tokens``, a row for every row with a pool.
    """
    steps.run(engine, "replay_session_reads", name=name, materialised=True, requests=requests)


def _step(engine: Engine, part: str, names: dict[str, str], *, materialised: bool = False, **words: str) -> None:
    steps.run(engine, f"replay_prefix_{part}", name=names[part], materialised=materialised, **names, **words)
