"""Log files as bytes: finding them, hashing them, unpacking gzip and zstd by content, not by name."""

from __future__ import annotations

import glob
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import zstandard

from tenfold.errors import LogFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_CHUNK = 1 << 20
Packing = Literal["none", "gzip", "zstd"]


class TruncatedArchive(Exception):  # noqa: N818 -- caught where the lines before the cut are kept
    """A compressed file ends before its data do."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a file's bytes tells.

    Args:
        sha256: Hash of the file as it lies on disk.
        lines: Physical lines, the last one counted without its newline too.
        packing: Compression found in the content.
        truncated: The archive ends too early.
    """

    sha256: str
    lines: int
    packing: Packing
    truncated: bool


def find(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """List the files that paths, directories (recursive) and globs name; hidden files are left out.

    Args:
        paths: One or more of them.

    Returns:
        Files in the order given, those of one directory or glob sorted; none twice.

    Raises:
        LogFormatError: A path names nothing.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    found: dict[Path, None] = {}
    for path in given:
        one = Path(path)
        if one.is_dir():
            files = sorted(file for file in one.rglob("*") if file.is_file() and not _hidden(file.relative_to(one)))
        elif one.exists():
            files = [one]
        else:
            matches = glob.glob(str(path), recursive=True)  # noqa: PTH207 -- Path.glob refuses absolute patterns
            files = sorted(Path(name) for name in matches if Path(name).is_file())
        if not files:
            raise LogFormatError(f"{path}: no such file, directory or match. Check the path")
        found.update(dict.fromkeys(files))
    if not found:
        raise LogFormatError("no log files were named")
    return list(found)


def _hidden(relative: Path) -> bool:
    return any(part.startswith(".") for part in relative.parts)


def packing(file: Path) -> Packing:
    """Tell a file's compression by its first bytes.

    Args:
        file: The file.

    Returns:
        The compression; ``none`` for anything unknown.
    """
    with file.open("rb") as handle:
        magic = handle.read(4)
    if magic[:2] == b"\x1f\x8b":
        return "gzip"
    return "zstd" if magic == b"\x28\xb5\x2f\xfd" else "none"


def chunks(file: Path, note: Callable[[bytes], object] | None = None) -> Iterator[bytes]:
    """Read a file unpacked, in pieces.

    Args:
        file: The file.
        note: Takes the bytes as they lie on disk.

    Yields:
        Pieces of the unpacked content.

    Raises:
        TruncatedArchive: After the last piece that could be read.
    """
    kind = packing(file)
    with file.open("rb") as handle:
        raw = iter(lambda: handle.read(_CHUNK), b"")
        pieces = _noted(raw, note)
        if kind == "none":
            yield from pieces
        elif kind == "gzip":
            yield from _gunzip(pieces)
        else:
            yield from _unzstd(pieces)


def _noted(pieces: Iterator[bytes], note: Callable[[bytes], object] | None) -> Iterator[bytes]:
    for piece in pieces:
        if note is not None:
            note(piece)
        yield piece


def _gunzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    broken = False
    for piece in pieces:
        rest = b"" if broken else piece  # a broken archive is still read to its end, for the hash
        while rest:
            if unpacker.eof:
                rest = rest.lstrip(b"\0")  # padding between members
                if not rest:
                    break
                unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                yield unpacker.decompress(rest)
            except zlib.error:
                broken = True
                break
            rest = unpacker.unused_data
    if broken or not unpacker.eof:
        raise TruncatedArchive


def _unzstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    broken = False
    for piece in pieces:
        rest = b"" if broken else piece
        while rest:
            if unpacker.eof:
                unpacker = zstandard.ZstdDecompressor().decompressobj()
            try:
                yield unpacker.decompress(rest)
            except zstandard.ZstdError:
                broken = True
                break
            rest = unpacker.unused_data
    if broken or not unpacker.eof:
        raise TruncatedArchive


def scan(file: Path) -> Scan:
    """Hash a file and count its lines in one pass.

    Args:
        file: The file.

    Returns:
        What the pass told.
    """
    digest = hashlib.sha256()
    lines, last, truncated = 0, b"\n", False
    try:
        for piece in chunks(file, digest.update):
            if piece:
                lines += piece.count(b"\n")
                last = piece[-1:]
    except TruncatedArchive:
        truncated = True
    return Scan(digest.hexdigest(), lines + (last != b"\n"), packing(file), truncated)


def lines(file: Path) -> Iterator[tuple[int, bytes]]:
    r"""Read physical lines, split on ``\n`` alone, without it.

    Args:
        file: The file.

    Yields:
        Line number from 1, and its bytes.

    Raises:
        TruncatedArchive: After the last whole line.
    """
    held, number = b"", 0
    for piece in chunks(file):
        *whole, held = (held + piece).split(b"\n")
        for line in whole:
            number += 1
            yield number, line
    if held:
        yield number + 1, held


def head(file: Path, size: int = 1 << 18) -> bytes:
    """Read the first bytes, unpacked.

    Args:
        file: The file.
        size: About how many.

    Returns:
        The bytes, whole lines only where there is more than one.
    """
    got = b""
    try:
        for piece in chunks(file):
            got += piece
            if len(got) >= size:
                return got[: got.rfind(b"\n") + 1] or got
    except TruncatedArchive:
        return got[: got.rfind(b"\n") + 1]
    return got
