"""What a place where logs live hands to the load: a file on this machine and the name the database calls it."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tenfold.errors import LogFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

Answer = TypeVar("Answer")
# Environment variables of cloud and database clients whose value is a credential, by a word in their name.
_CLIENTS = ("AWS_", "AZURE_", "GOOGLE_", "PG")
_CREDENTIAL = re.compile(r"KEY|SECRET|TOKEN|PASS|SAS|CREDENTIAL")
_ADDRESS = re.compile(r"\bhttps?://[^\s\"'<>)]+")


class SourceError(LogFormatError):
    """A place where logs live cannot be read; the message names it without credentials."""


class Mark(NamedTuple):
    """How far a source has been read; the load stores it in the transaction of the rows.

    Args:
        name: Row of `meta`.
        value: Its value; of two, the greater one stands.
    """

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a load.

    Args:
        name: What the database calls it: the path as given, or the place it was fetched from, without credentials.
        file: Where it lies on this machine.
        version: What its store says of its content; empty where it has no store.
        mark: How far its source has been read with it.
        is_found: It lies in a folder, or a glob fits it; nobody named it.
    """

    name: str
    file: Path
    version: str = ""
    mark: Mark | None = None
    is_found: bool = False

    def public(self, text: str) -> str:
        """Name the source in a text where it names the file.

        Args:
            text: A message.

        Returns:
            The message.
        """
        return text.replace(str(self.file), self.name)

    @contextmanager
    def named(self) -> Generator[None]:
        """Let errors name the source instead of a temporary file.

        Yields:
            Nothing.
        """
        try:
            yield
        except LogFormatError as error:
            error.args = (self.public(str(error)),)
            raise


def kept(pieces: Iterable[bytes], folder: Path) -> Path:
    """Write pieces to a file of their own.

    Args:
        pieces: The content.
        folder: Where to keep it.

    Returns:
        The file.
    """
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as out:
        for piece in pieces:
            out.write(piece)
    return Path(out.name)


def asked(
    name: str,
    errors: type[Exception] | tuple[type[Exception], ...],
    reason: Callable[[Exception], str],
    call: Callable[[], Answer],
) -> Answer:
    """Ask a client library; what it raises may hold credentials, so nothing of it is chained to the error raised here.

    Args:
        name: The source, for the message.
        errors: What the library raises.
        reason: Says in words what went wrong, and the way out.
        call: The question.

    Returns:
        The answer.

    Raises:
        SourceError: The library raised one of its errors.
    """
    try:
        return call()
    except errors as error:
        said = reason(error)
    raise SourceError(f"{name}: {scrubbed(said)}")


def scrubbed(text: str, *secrets: str) -> str:
    """Take credentials out of a text, and addresses with what follows their ``?``.

    Args:
        text: A message of a client library.
        secrets: Further texts to take out, beside those of the environment.

    Returns:
        The message in one line.
    """
    for secret in sorted({*_secrets(), *filter(None, secrets)}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return " ".join(_ADDRESS.sub("the server", text).split())


def _secrets() -> list[str]:
    named = (name for name in os.environ if name.startswith(_CLIENTS) and _CREDENTIAL.search(name))
    return [os.environ[name] for name in named if len(os.environ[name]) > 3]
