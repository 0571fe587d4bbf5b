"""The texts of a staged file to hashes and counts: read in batches, put back as one struct column, then dropped.

Counts are estimates and stand only where the source gives none: the prompt's with three tokens a message, as chat
templates add them, and three that begin the answer; the answer's as far as it was logged (a model's hidden reasoning is
not). A prompt with images, sound or files has no count. What is unknown stays NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tenfold.logs.base import TEXT, identifier, steps, usage_sql
from tenfold.logs.normalise import LINE
from tenfold.logs.text import answers, segments
from tenfold.logs.text.fields import MEMBERS, TYPE, with_text, without_text
from tenfold.logs.text.hashing import BLOCK_TOKENS, Hasher, hasher, keep, row
from tenfold.logs.text.tokens import BLOCK_ENCODING, Tokens, count, encoding_name, is_available
from tenfold.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from tenfold.logs.base import Reader
    from tenfold.logs.text.answers import Answer
    from tenfold.logs.text.segments import Prompt

# Characters of text to fetch at once, about; and the rows to begin with.
_AT_ONCE = 8_000_000
_FIRST_ROWS, _LEAST_ROWS, _MOST_ROWS = 256, 16, 1 << 16
# What OpenAI's chat templates add to every message, beside its role, and at the answer's beginning.
_BEGIN_ANSWER = 3
STAGED = "new_texts"
_KEPT_TYPES = tuple(column.type for column in schema.TEXTS)
_DERIVED_TYPES = ("BIGINT", *MEMBERS.values())


class _Row(NamedTuple):
    """One row's text, taken apart."""

    row_id: int
    prompt: Prompt | None
    params: str | None
    answer: Answer | None
    encoding: str
    is_uncounted: bool


class Texts:
    """What one load does with texts.

    Args:
        connection: The store.
        hashes: Count and hash them.
        keep_text: Keep them, too.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, hashes: bool, keep_text: bool) -> None:
        self.connection = connection
        self.hashes = hashes
        self.keep_text = keep_text
        self._hasher: Hasher | None = None
        self._tokens = {BLOCK_ENCODING: Tokens()} if is_available() else {}

    def attach(self, reader: Reader, *, first_line: int, load_id: int) -> None:
        """Give the staged table `one` the column ``TEXT``, and empty the columns that held nothing but text.

        Args:
            reader: The file's reader.
            first_line: Line of the table's first row, where it does not say itself.
            load_id: Row of `loads`.

        Raises:
            StoreError: The key of the environment is not the database's.
        """
        if reader.text is None:
            return
        if not self._has_text(reader):
            self.connection.execute(f"ALTER TABLE one ADD COLUMN {TEXT} {TYPE}")
            return
        columns = ", ".join(f"{name} {kind}" for name, kind in MEMBERS.items())
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE derived (row_id BIGINT, {columns})")
        self._read(reader, first_line, load_id)
        self._put_back(reader, first_line)

    def publish(self) -> None:
        """Write the key, and the texts that are kept; within the load's transaction."""
        if self._hasher is not None:
            keep(self.connection, self._hasher)
        if self.keep_text:
            self.connection.execute(
                f"INSERT INTO texts FROM {STAGED} n SEMI JOIN requests r ON r.load_id = n.load_id "
                "AND r.source_line = n.source_line AND r.dedup_key IS NOT DISTINCT FROM n.dedup_key"
            )

    def reading(self, reader: Reader) -> Reader:
        """Say how a format is read in this load.

        Args:
            reader: Its reader.

        Returns:
            It with its text, or without any.
        """
        return with_text(reader) if self.hashes or self.keep_text else without_text(reader)

    def _has_text(self, reader: Reader) -> bool:
        text = reader.text
        return text is not None and bool(
            self.connection.execute(
                f"SELECT 1 FROM one r WHERE ({text.prompt}) IS NOT NULL OR ({text.response}) IS NOT NULL LIMIT 1"
            ).fetchall()
        )

    def _read(self, reader: Reader, first_line: int, load_id: int) -> None:
        """Fill `derived`, and the table of kept texts, from `one`, some rows at a time."""
        text = reader.text
        assert text is not None
        names = ("input_tokens", "output_tokens")
        shape = reader.shape
        counted = [reader.counts.get(n) or usage_sql(shape, reader.usage, shape.counts.get(n, ())) for n in names]
        is_uncounted = " AND ".join(f"({value}) IS NULL" for value in counted)
        held = (
            f"SELECT r.rowid AS row_id, ({text.prompt})::VARCHAR AS prompt, ({text.params})::VARCHAR AS params, "
            f"({text.response})::VARCHAR AS response, ({reader.fields.get('model', 'NULL')})::VARCHAR AS model, "
            f"({is_uncounted}) AS is_uncounted, coalesce(r.{LINE}, r.rowid + {first_line}) AS line, "
            f"({reader.dedup_key})::VARCHAR AS dedup_key FROM one r"
        )
        rows = self.connection.execute("SELECT count(*) FROM one").fetchall()[0][0]
        if self.hashes and self._hasher is None:
            self._hasher = hasher(self.connection)
        start, size = 0, _FIRST_ROWS
        while start < rows:
            batch = self.connection.execute(
                f"FROM ({held} WHERE r.rowid >= {start} AND r.rowid < {start + size}) "
                "WHERE prompt IS NOT NULL OR response IS NOT NULL"
            ).fetchall()
            start += size
            if batch and self._hasher is not None:
                opened = [_opened(*row[:6]) for row in batch]
                self._insert("derived", _DERIVED_TYPES, self._derived(opened, self._hasher))
            if batch and self.keep_text:
                self._insert(STAGED, _KEPT_TYPES, [(load_id, row[6], row[7], *_said(row[1], row[3])) for row in batch])
            read = sum(len(row[1] or "") + len(row[3] or "") for row in batch)
            size = max(_LEAST_ROWS, min(2 * size if read < _AT_ONCE else size * _AT_ONCE // read, _MOST_ROWS))

    def _insert(self, table: str, types: Iterable[str], rows: Iterable[tuple[object, ...]]) -> None:
        lists = [list(column) for column in zip(*rows, strict=True)]
        unnested = ", ".join(f"unnest(${number}::{kind}[])" for number, kind in enumerate(types, 1))
        self.connection.execute(f"INSERT INTO {table} SELECT {unnested}", lists)

    def _derived(self, batch: list[_Row], known: Hasher) -> Iterable[tuple[object, ...]]:
        """Hash and count a batch; tokens of all its pieces are made at once, in threads."""
        pieces: dict[str, bytes] = {}
        wanted: dict[str, dict[bytes, str]] = {name: {} for name in self._tokens}

        def hashed(text: str, *encodings: str) -> bytes:
            key = pieces.get(text)
            if key is None:
                key = pieces[text] = known.piece(text)
            for name in encodings:
                if self._tokens:
                    wanted.setdefault(name, {})[key] = text
            return key

        keyed: list[tuple[list[tuple[bytes, list[bytes]]], list[bytes]]] = []
        for found in batch:
            counting = (found.encoding,) if found.is_uncounted else ()
            asked: list[tuple[bytes, list[bytes]]] = []
            for segment in found.prompt.segments if found.prompt else ():
                role = hashed(segment.role or "", BLOCK_ENCODING, *counting)
                asked.append((role, [hashed(piece, BLOCK_ENCODING, *counting) for piece in segment.pieces]))
            said = [hashed(piece, *counting) for _, piece in found.answer.pieces] if found.answer else []
            keyed.append((asked, said))
        ids = {name: self._cutter(name).ids(texts) for name, texts in wanted.items()}
        for found, (asked, said) in zip(batch, keyed, strict=True):
            yield self._one(found, asked, said, ids, known)

    def _cutter(self, name: str) -> Tokens:
        return self._tokens.setdefault(name, Tokens(name))

    def _one(
        self,
        found: _Row,
        asked: list[tuple[bytes, list[bytes]]],
        said: list[bytes],
        ids: dict[str, dict[bytes, bytes]],
        known: Hasher,
    ) -> tuple[object, ...]:
        prompt, answer = found.prompt, found.answer
        prompt_hash = blocks = response_hash = input_tokens = output_tokens = None
        if prompt is not None:
            named = [(s.role, tuple(keys)) for s, (_, keys) in zip(prompt.segments, asked, strict=True)]
            prompt_hash = known.parts(named, "prompt")
        if answer is not None:
            response_hash = known.parts(
                ((kind, (key,)) for (kind, _), key in zip(answer.pieces, said, strict=True)), "response"
            )

        def whole(encoding: str) -> bytes:
            assert prompt is not None
            cut = ids[encoding]
            told = zip(prompt.segments, asked, strict=True)
            return row((s, cut[role], b"".join(cut[key] for key in keys)) for s, (role, keys) in told)

        if self._tokens:
            if prompt is not None:
                blocks = known.blocks(whole(BLOCK_ENCODING))
            if found.is_uncounted and prompt is not None and not prompt.has_media:
                framed = any(segment.role is not None for segment in prompt.segments)
                input_tokens = count(whole(found.encoding)) + (_BEGIN_ANSWER if framed else 0)
            if found.is_uncounted and answer is not None:
                output_tokens = sum(count(ids[found.encoding][key]) for key in said)
        return (
            found.row_id,
            prompt_hash,
            None if found.params is None else known.text(found.params, "params"),
            response_hash,
            blocks,
            None if blocks is None else BLOCK_TOKENS,
            input_tokens,
            output_tokens,
            not self._tokens,
        )

    def _put_back(self, reader: Reader, first_line: int) -> None:
        text = reader.text
        assert text is not None
        others = {_root(path) for path in reader.leaves if path not in text.leaves}
        only_text = dict.fromkeys(map(_root, text.leaves)).keys() - others
        types = self.connection.execute("DESCRIBE one").fetchall()
        blank = [f"NULL::{kind} AS {identifier(name)}" for name, kind, *_ in types if name in only_text]
        line = f"coalesce(r.{LINE}, r.rowid + {first_line}) AS {LINE}"
        made = ", ".join(f"{name} := d.{name}" for name in MEMBERS)
        self.connection.execute(
            f"CREATE TEMP TABLE two AS SELECT r.* REPLACE ({', '.join([line, *blank])}), "
            f"CASE WHEN d.row_id IS NOT NULL THEN struct_pack({made}) END AS {TEXT} "
            "FROM one r LEFT JOIN derived d ON d.row_id = r.rowid ORDER BY r.rowid"
        )
        self.connection.execute("DROP TABLE one; DROP TABLE derived; ALTER TABLE two RENAME TO one")


def forget_displaced(connection: duckdb.DuckDBPyConnection) -> None:
    """Delete the kept texts of requests that a later snapshot takes the place of.

    Args:
        connection: The store, in the load's transaction, with the temporary table `displaced`.
    """
    connection.execute(
        "DELETE FROM texts t USING requests r WHERE r.rowid IN (SELECT row_id FROM displaced) "
        "AND r.load_id = t.load_id AND r.source_line = t.source_line AND r.dedup_key IS NOT DISTINCT FROM t.dedup_key"
    )


def _root(path: str) -> str:
    return steps(path)[0].removesuffix("[]")


def _said(prompt: str | None, response: str | None) -> tuple[str | None, str | None]:
    """Give what is kept of a call: its request without headers and settings, and its answer."""
    asked = None if prompt is None else segments.kept(segments.read(prompt))
    return asked, None if response is None else answers.kept(response)


def _opened(
    row_id: int,
    prompt: str | None,
    params: str | None,
    response: str | None,
    model: str | None,
    is_uncounted: bool,  # noqa: FBT001
) -> _Row:
    asked = None if prompt is None else segments.read(prompt)
    set_by = asked if params == prompt else None if params is None else segments.read(params)
    said = None if response is None else segments.read(response)
    return _Row(
        row_id,
        None if asked is None else segments.prompt(asked),
        segments.params(set_by),
        None if said is None else answers.answer(said),
        encoding_name(model),
        is_uncounted,
    )
