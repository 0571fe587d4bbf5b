"""Log files as bytes: finding them, hashing them, unpacking gzip and zstd by content, not by name."""

from __future__ import annotations

import glob
import hashlib
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import zstandard

from tenfold import config
from tenfold.errors import LogFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_CHUNK = 1 << 20
# Unpacked at a time, so that at most some 70 MB come of it; near damage, byte by byte, so that nothing decoded before
# it is lost.
_STEPS = {"gzip": 1 << 16, "zstd": 1 << 11}
# What an archive may expand to, however small it is; beyond, ``max_expansion`` times its size.
_EXPANDS_FREELY = 1 << 30
Packing = Literal["none", "gzip", "zstd"]
_CUT = "the archive ends before its data do"
_CORRUPT = "the archive's data are corrupt"
_TRAILING = "the archive is followed by bytes that are none of it"
_CHECKSUM = "the archive's checksum does not match its data"


class TruncatedArchive(Exception):  # noqa: N818 -- caught where the lines before the damage are kept
    """A compressed file is cut short or damaged.

    Args:
        damage: What is wrong, in words.
    """

    def __init__(self, damage: str) -> None:
        super().__init__(damage)
        self.damage = damage

    @property
    def is_whole(self) -> bool:
        """Whether all data were unpacked, so that the last line is whole without its newline too."""
        return self.damage in {_TRAILING, _CHECKSUM}

    def after(self, line: int) -> str:
        """Say what the damage means for the lines.

        Args:
            line: Last line that was read.

        Returns:
            The reason for a reject.
        """
        if self.damage == _CHECKSUM:
            return f"{self.damage}: any of the {line} lines read may be wrong"
        return f"{self.damage}; the lines before are loaded, what follows line {line} is missing"


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a file's bytes tells.

    Args:
        sha256: Hash of the file as it lies on disk.
        lines: Physical lines, the last one counted without its newline too; of a damaged archive those that are whole.
        packing: Compression found in the content.
        damage: What is wrong with the archive; empty where nothing is.
        size: Bytes, unpacked.
        stamp: The file's ``stamp`` as the pass began.
    """

    sha256: str
    lines: int
    packing: Packing
    damage: str
    size: int
    stamp: tuple[int, ...] = ()

    @property
    def is_unsure(self) -> bool:
        """Whether what was unpacked before the damage showed may be wrong already."""
        return self.damage in {_CHECKSUM, _CORRUPT}

    @property
    def truncated(self) -> bool:
        """Whether the archive is cut short or damaged."""
        return bool(self.damage)


def find(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """List the files that paths, directories (recursive) and globs name; hidden files are left out.

    Args:
        paths: One or more of them.

    Returns:
        Files in the order given, those of one directory or glob sorted; none twice.

    Raises:
        LogFormatError: A path names nothing, something that is no regular file, or is not UTF-8.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    found: dict[Path, None] = {}
    for path in given:
        one = Path(path)
        if one.is_dir():
            files = sorted(file for file in one.rglob("*") if file.is_file() and not _hidden(file.relative_to(one)))
        elif one.is_file():
            files = [one]
        elif one.exists():
            raise LogFormatError(
                f"{path}: not a regular file (a device), and a log is read more than once. "
                "Save it to a file first and load that"
            )
        else:
            matches = glob.glob(str(path), recursive=True)  # noqa: PTH207 -- Path.glob refuses absolute patterns
            files = sorted(Path(name) for name in matches if Path(name).is_file())
        if not files and one.is_dir():
            raise LogFormatError(f"{path}: the folder holds no files (hidden ones are left out). Check the path")
        if not files and "://" in str(path):  # what follows may be signed
            kind = str(path).partition("://")[0]
            raise LogFormatError(f"{kind}://...: no place that logs are read from. Save it to a file and load that")
        if not files:
            raise LogFormatError(f"{path}: no such file, directory or match. Check the path")
        found.update(dict.fromkeys(files))
    if not found:
        raise LogFormatError("no log files were named")
    for file in found:
        _check_name(file)
    return list(found)


def _check_name(file: Path) -> None:
    try:
        str(file).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = os.fsencode(file).decode("utf-8", "backslashreplace")
        raise LogFormatError(f"{shown}: the file's name is not UTF-8, so no table could hold it. Rename it") from error


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
        LogFormatError: An archive expands beyond the bound.
    """
    kind = packing(file)
    if kind == "none":
        yield from _pieces(file, note)
        return
    archive, step, bound = _Archive(kind), _STEPS[kind], _EXPANDS_FREELY
    for piece in _pieces(file, note):
        for start in range(0, 0 if archive.damage else len(piece), step):
            yield from archive.unpack(piece[start : start + step])
            if archive.unpacked > bound:
                bound = _bound(file, archive.unpacked)
    if archive.damage:
        yield from _before_damage(file, kind, archive.packed, archive.unpacked)
        raise TruncatedArchive(archive.damage)
    if not archive.at_end:
        raise TruncatedArchive(_CUT)


def _bound(file: Path, unpacked: int) -> int:
    """Say what an archive may expand to; refuse one that is beyond it."""
    ratio, size = config.settings().max_expansion, file.stat().st_size
    bound = max(_EXPANDS_FREELY, int(ratio * size))
    if unpacked > bound:
        raise LogFormatError(
            f"{file}: the archive's {size:,} bytes expand to more than {bound:,}, the bound: {ratio:g} times its size "
            f"(max_expansion), or {_EXPANDS_FREELY:,} if that is more. If it is a log, unpack it first, or set "
            "max_expansion higher in tenfold.toml"
        )
    return bound


def _pieces(file: Path, note: Callable[[bytes], object] | None = None) -> Iterator[bytes]:
    with file.open("rb") as handle:
        while piece := handle.read(_CHUNK):
            if note is not None:
                note(piece)
            yield piece


def _before_damage(file: Path, kind: Packing, good: int, given: int) -> Iterator[bytes]:
    """Unpack again what the step that failed had decoded: a decompressor that fails gives nothing of that step."""
    archive = _Archive(kind)
    read = 0
    for piece in _pieces(file):
        position = 0
        while position < len(piece):
            step = min(_STEPS[kind], good - read) if read < good else 1
            for unpacked in archive.unpack(piece[position : position + step]):
                before = archive.unpacked - len(unpacked)
                yield unpacked[max(0, given - before) :]
            if archive.damage:
                return
            taken = min(step, len(piece) - position)
            position, read = position + taken, read + taken


class _Archive:
    """Members or frames, one after the other, until the end or the damage."""

    def __init__(self, kind: Packing) -> None:
        self._kind = kind
        self._open()
        self.damage = ""
        self.packed = 0
        self.unpacked = 0
        self._members = 0

    def _open(self) -> None:
        if self._kind == "gzip":
            self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        else:
            self._unpacker = zstandard.ZstdDecompressor().decompressobj()
        self._started = False

    @property
    def at_end(self) -> bool:
        """Whether the last member is complete."""
        return self._unpacker.eof

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        rest = packed
        while rest and not self.damage:
            if self._unpacker.eof:
                rest = rest.lstrip(b"\0")  # padding between members
                if not rest:
                    break
                self._open()
                self._members += 1
            try:
                unpacked = self._unpacker.decompress(rest)
            except (zlib.error, zstandard.ZstdError) as error:
                self.damage = self._named(str(error))
                return
            self._started = self._started or bool(unpacked)
            self.unpacked += len(unpacked)
            yield unpacked
            rest = self._unpacker.unused_data
        self.packed += len(packed)

    def _named(self, error: str) -> str:
        if "incorrect data check" in error or "incorrect length check" in error or "checksum" in error:
            return _CHECKSUM
        return _TRAILING if self._members and not self._started else _CORRUPT


def stamp(file: Path) -> tuple[int, ...]:
    """Tell a file from what it was before, at the cost of a look at its folder.

    Args:
        file: The file.

    Returns:
        What differs once it was written to or another file has its name; nothing where it is gone.
    """
    try:
        told = file.stat()
    except OSError:
        return ()
    return told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns


def scan(file: Path) -> Scan:
    """Hash a file and count its lines in one pass.

    Args:
        file: The file.

    Returns:
        What the pass told.
    """
    digest, begun = hashlib.sha256(), stamp(file)
    lines, size, last, damage = 0, 0, b"\n", ""
    try:
        for piece in chunks(file, digest.update):
            if piece:
                lines += piece.count(b"\n")
                size += len(piece)
                last = piece[-1:]
    except TruncatedArchive as broken:
        damage = broken.damage
        last = last if broken.is_whole else b"\n"
    return Scan(digest.hexdigest(), lines + (last != b"\n"), packing(file), damage, size, begun)


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
    try:
        for piece in chunks(file):
            *whole, held = (held + piece).split(b"\n")
            for line in whole:
                number += 1
                yield number, line
    except TruncatedArchive as broken:
        if held and broken.is_whole:
            yield number + 1, held
        raise
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
    except TruncatedArchive as broken:
        return got if broken.is_whole else got[: got.rfind(b"\n") + 1]
    return got
