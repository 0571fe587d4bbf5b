"""Keyed hashes of texts: equal text, equal hash, within one database; nothing without its key.

Blake2b with a key, eight bytes, as sixteen hexadecimal signs; each kind of hash has its own ``person``, so that a
prompt and an answer that say the same do not have the same hash.

**Prefix blocks.** A prompt is one row of tokens (o200k_base, whatever the model): of every message a start mark, its
role, a mark, its content, an end mark, as chat templates have them; of bare text its tokens alone. The hash of block i
is of the hash before it and of its 128 tokens, so it covers all before it: two requests share exactly the leading
blocks in which every token is the same. Only whole blocks count; the up to 127 tokens behind the last one are in
``prompt_hash`` alone. A prompt below 128 tokens has an empty list.

The key is 32 random bytes, made when the first text is hashed and kept in the database's ``meta``; with
``TENFOLD_HASH_KEY`` set, it is made from that, and the database keeps a fingerprint alone.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from typing import TYPE_CHECKING, Final

from tenfold.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from tenfold.logs.text.segments import Segment

ENVIRONMENT: Final = "TENFOLD_HASH_KEY"
KEY: Final = "hash_key"
FINGERPRINT: Final = "hash_key_fingerprint"
BLOCK_TOKENS: Final = 128
_DIGEST = 8
_LEAST = 32
_TOKEN_BYTES = 4
# Outside every vocabulary.
START, MIDDLE, END = (number.to_bytes(_TOKEN_BYTES, "little") for number in (2**32 - 3, 2**32 - 2, 2**32 - 1))


class Hasher:
    """Hashes with one key.

    Args:
        key: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self.key = key

    def digest(self, content: bytes, kind: str, size: int = _DIGEST) -> bytes:
        """Hash bytes.

        Args:
            content: The bytes.
            kind: What they are: at most 16 signs.
            size: Bytes of the result.

        Returns:
            The hash.
        """
        return hashlib.blake2b(content, digest_size=size, key=self.key, person=kind.encode()).digest()

    def text(self, text: str, kind: str) -> str:
        """Hash a text.

        Args:
            text: The text.
            kind: What it is.

        Returns:
            Sixteen hexadecimal signs.
        """
        return self.digest(text.encode("utf-8", "surrogatepass"), kind).hex()

    def piece(self, text: str) -> bytes:
        """Hash a piece of a prompt, to know it again.

        Args:
            text: The piece.

        Returns:
            Sixteen bytes.
        """
        return self.digest(text.encode("utf-8", "surrogatepass"), "piece", 16)

    def parts(self, parts: Iterable[tuple[str | None, tuple[bytes, ...]]], kind: str) -> str:
        """Hash what is made of hashed pieces.

        Args:
            parts: Role (or kind) and the hashes of its pieces, in order.
            kind: What the whole is.

        Returns:
            Sixteen hexadecimal signs.
        """
        whole = hashlib.blake2b(digest_size=_DIGEST, key=self.key, person=kind.encode())
        for role, pieces in parts:
            name = b"" if role is None else b"\1" + role.encode("utf-8", "surrogatepass")
            whole.update(len(name).to_bytes(4, "little") + name + len(pieces).to_bytes(4, "little"))
            whole.update(b"".join(pieces))
        return whole.hexdigest()

    def blocks(self, row: bytes) -> list[str]:
        """Hash the whole blocks of a row of tokens, each with all before it.

        Args:
            row: Packed token ids.

        Returns:
            Sixteen hexadecimal signs a block.
        """
        size = BLOCK_TOKENS * _TOKEN_BYTES
        found: list[str] = []
        before = b""
        for end in range(size, len(row) + 1, size):
            before = self.digest(before + row[end - size : end], "prefix")
            found.append(before.hex())
        return found


def row(segments: Iterable[tuple[Segment, bytes, bytes]]) -> bytes:
    """Put a prompt's tokens in a row.

    Args:
        segments: Each with the packed tokens of its role and of its content.

    Returns:
        Packed token ids.
    """
    parts: list[bytes] = []
    for segment, role, content in segments:
        parts += [content] if segment.role is None else [START, role, MIDDLE, content, END]
    return b"".join(parts)


def hasher(connection: duckdb.DuckDBPyConnection) -> Hasher:
    """Take the database's key, or make one.

    Args:
        connection: The store.

    Returns:
        The hasher; ``keep`` writes its key down.

    Raises:
        StoreError: The environment's key is not the one that the database's hashes were made with, or is too short.
    """
    rows = connection.execute("SELECT name, value FROM meta WHERE name IN (?, ?)", [KEY, FINGERPRINT]).fetchall()
    held: dict[str, str] = dict(rows)
    given = os.environ.get(ENVIRONMENT)
    if given is None:
        if KEY in held:
            return Hasher(bytes.fromhex(held[KEY]))
        if FINGERPRINT in held:
            raise StoreError(
                f"this database's texts were hashed with a key from {ENVIRONMENT}, which is not set. Set it to the "
                "same key, or load without hashes (--no-hashes)"
            )
        return Hasher(secrets.token_bytes(32))
    if len(given) < _LEAST:
        raise StoreError(f"{ENVIRONMENT} is too short: it takes at least {_LEAST} signs, such as 64 hexadecimal ones")
    found = Hasher(hashlib.blake2b(given.encode(), digest_size=32).digest())
    known = Hasher(bytes.fromhex(held[KEY])) if KEY in held else None
    before = fingerprint(known) if known else held.get(FINGERPRINT)
    if before not in (None, fingerprint(found)):
        made = "a key of its own" if known else f"another {ENVIRONMENT}"
        raise StoreError(
            f"this database's texts were hashed with {made}: hashes made with the present {ENVIRONMENT} would match "
            "none of them. Use the former key (unset the variable for the database's own), or load into a new file"
        )
    return found


def fingerprint(found: Hasher) -> str:
    """Tell a key without giving it away.

    Args:
        found: Its hasher.

    Returns:
        Sixteen hexadecimal signs.
    """
    return found.text("fingerprint", "key")


def keep(connection: duckdb.DuckDBPyConnection, found: Hasher) -> None:
    """Write the key, or its fingerprint where the environment gave it, into the store, if it is not there.

    Args:
        connection: The store, in the load's transaction.
        found: The hasher that was used.
    """
    given = os.environ.get(ENVIRONMENT) is not None
    name, value = (FINGERPRINT, fingerprint(found)) if given else (KEY, found.key.hex())
    connection.execute(
        "INSERT INTO meta SELECT $1, $2 WHERE NOT EXISTS (SELECT 1 FROM meta WHERE name IN ($3, $4))",
        [name, value, KEY, FINGERPRINT],
    )
