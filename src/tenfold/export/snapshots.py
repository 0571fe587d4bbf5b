"""Snapshots of a published folder: one publisher at a time, a new one made aside and put in place whole, old ones gone.

At any moment a process may be killed: ``current`` then points to what it pointed to before, and the next publisher
clears away what was left half made.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tenfold.errors import StoreError
from tenfold.store.manifest import CURRENT, MANIFEST, MARK, SNAPSHOTS, Snapshot, read, refuse_pattern

_NEW, _OLD = ".new-", ".old-"
_PAUSE_S = 0.1
# What a file system without locks says: then nobody is told from anybody, and the last one wins.
_NO_LOCKS = (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS)


class Folder:
    """A published folder, held by this publisher alone.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.snapshots = path / SNAPSHOTS

    @property
    def current(self) -> Snapshot | None:
        """What is current; None where nothing is, or nothing that can be built upon."""
        target = self.path / CURRENT
        if not target.is_dir():
            return None
        try:
            return read(target.resolve())
        except StoreError:
            return None

    @contextmanager
    def staging(self) -> Generator[Path]:
        """Give a folder to make a snapshot in; nothing is left of it where it is not put in place.

        Yields:
            The folder.
        """
        made = Path(tempfile.mkdtemp(prefix=_NEW, dir=self.snapshots))
        made.chmod(0o777 & ~_umask())
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def put(self, staged: Path, name: str) -> Path:
        """Give a snapshot its name and make it the current one.

        Args:
            staged: The finished folder.
            name: Its name.

        Returns:
            Where it lies now.
        """
        final = self.snapshots / name
        while final.exists():  # the same content, twice within one second
            final = final.with_name(f"{final.name}x")
        synced(staged)
        staged.rename(final)
        synced(self.snapshots)
        link = self.path / f".{CURRENT}-{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(Path(SNAPSHOTS) / final.name, target_is_directory=True)
        link.replace(self.path / CURRENT)
        synced(self.path)
        return final

    def prune(self, keep: int, *, even_read: bool = False) -> list[str]:
        """Remove old snapshots; one that somebody is reading stays until the next time.

        Args:
            keep: How many of the newest stay, the current one among them.
            even_read: Remove also what is being read.

        Returns:
            Names of the removed ones.
        """
        current = (self.path / CURRENT).resolve()
        # A snapshot left without becoming current (killed between the two steps) is newer by name, and no state that
        # anybody saw: it is kept as any other, never instead of the current one.
        others = sorted((one for one in self._whole() if one != current), key=lambda one: one.name, reverse=True)
        return [one.name for one in others[keep - 1 :] if self._removed(one, even_read=even_read)]

    def clear(self) -> None:
        """Remove what publishers that were killed have left half made or half removed."""
        for one in (*self.snapshots.glob(f"{_NEW}*"), *self.snapshots.glob(f"{_OLD}*")):
            shutil.rmtree(one)
        for one in self.path.glob(f".{CURRENT}-*"):
            one.unlink()

    def _whole(self) -> list[Path]:
        return [one.resolve() for one in self.snapshots.iterdir() if not one.name.startswith(".") and one.is_dir()]

    def _removed(self, one: Path, *, even_read: bool) -> bool:
        with suppress(FileNotFoundError), _sole(one / MANIFEST) as is_free:
            if not is_free and not even_read:
                return False
            gone = one.with_name(f"{_OLD}{one.name}")
            one.rename(gone)
            shutil.rmtree(gone)
            return True
        # without a manifest nobody can read it
        shutil.rmtree(one, ignore_errors=True)
        return True


@contextmanager
def _sole(manifest: Path) -> Generator[bool]:
    """Lock a snapshot's manifest against readers that come; tells whether there are none."""
    handle = os.open(manifest, os.O_RDONLY)
    try:
        yield _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    """Lock an open file for this process alone, unless somebody has it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


@contextmanager
def opened(out: Path, wait_s: float) -> Generator[Folder]:
    """Take a folder to publish into, for this process alone.

    Args:
        out: The folder; made where it is missing.
        wait_s: Seconds to wait for another publisher.

    Yields:
        The folder, with what killed publishers left cleared away.

    Raises:
        StoreError: It holds something else, or another publisher is at work.
        OSError: It cannot be written.
    """
    check(out)
    folder = Folder(out)
    out.mkdir(exist_ok=True)
    handle = os.open(out / MARK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        _lock(handle, out, wait_s)
        folder.snapshots.mkdir(exist_ok=True)
        folder.clear()
        yield folder
    finally:
        os.close(handle)


def check(out: Path) -> None:
    """Refuse a place that publishing would spoil, or that nobody could read.

    Args:
        out: The folder.

    Raises:
        StoreError: It holds something else, or its name is a pattern.
    """
    refuse_pattern(out)
    way_out = "Name an empty folder, a new one, or one that was published into before: --out DIR"
    if not out.exists():
        if os.path.lexists(out):
            raise StoreError(f"{out}: a link to nothing. {way_out}")
        if not out.parent.is_dir():
            raise StoreError(f"{out}: there is no directory {out.parent}. Make it, or name another: --out DIR")
        return
    if not out.is_dir():
        raise StoreError(f"{out}: a file. {way_out}")
    if (out / MANIFEST).exists():
        raise StoreError(f"{out}: one snapshot, which never changes. Name the published folder that it lies in")
    current = out / CURRENT
    if os.path.lexists(current) and not current.is_symlink():
        raise StoreError(f"{current}: not a link that publishing made, so it is left alone. {way_out}")
    is_ours = (out / MARK).is_file() or (current.is_symlink() and (current / MANIFEST).is_file())
    if not is_ours and any(out.iterdir()):
        raise StoreError(f"{out}: holds something else ({next(iter(sorted(out.iterdir()))).name}). {way_out}")


def _lock(handle: int, out: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while not _locked(handle):
        if time.monotonic() >= deadline:
            pid = os.pread(handle, 20, 0).decode(errors="replace") or "unknown"
            raise StoreError(
                f"{out} is being published into by another process (PID {pid}). Waited {wait_s:g} s. "
                "Try again when it is done"
            )
        time.sleep(_PAUSE_S)
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())


def synced(path: Path) -> None:
    """Bring a file or a folder's entries to the disk.

    Args:
        path: The file or folder.
    """
    if sys.platform == "win32" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """Hash a file.

    Args:
        path: The file.

    Returns:
        Hexadecimal digits.
    """
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def linked(source: Path, target: Path) -> None:
    """Let a snapshot hold a file of the one before; a copy, where the file system has no hard links.

    Args:
        source: The file.
        target: Its further name.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
        synced(target)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
