"""Text to tokens with tiktoken, offline: the rank files are shipped, checked, and read in memory.

tiktoken's own loader fetches its files, and deletes one whose hash is wrong: it is never called. The two encodings are
OpenAI's; for every other provider a count is an estimate.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
from array import array
from binascii import a2b_base64
from collections import OrderedDict
from functools import lru_cache
from importlib import import_module, resources
from importlib.util import find_spec
from types import FunctionType
from typing import TYPE_CHECKING, Final

from tenfold.errors import TenfoldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from importlib.resources.abc import Traversable

    from tiktoken import Encoding

SHA256: Final = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
# The one that prefix blocks are cut with, whatever the model: blocks of two models' requests can then be compared.
BLOCK_ENCODING: Final = "o200k_base"
# Start of a model's id, without provider or fine-tuning prefix -> encoding; the first that fits, else o200k_base.
ENCODINGS: Final = (
    ("gpt-4o", "o200k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4.5", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-3.5", "cl100k_base"),
    ("gpt-35", "cl100k_base"),  # as Azure writes it
    ("text-embedding-3", "cl100k_base"),
    ("text-embedding-ada", "cl100k_base"),
)
# tiktoken's time grows faster than a single word; a text is cut before it is that long.
_LONGEST = 200_000
_THREADS = min(os.cpu_count() or 1, 8)
# A batch below this is not worth a pool of threads, in characters.
_FEW = 100_000
_TOKEN_BYTES = 4


class RankFileError(TenfoldError):
    """A shipped rank file is not the published one: install tenfold again."""


def is_available() -> bool:
    """Tell whether tiktoken is installed.

    Returns:
        Whether it is.
    """
    return find_spec("tiktoken") is not None


def encoding_name(model: str | None) -> str:
    """Say which encoding counts a model's text.

    Args:
        model: The model's id, as logged.

    Returns:
        ``cl100k_base`` or ``o200k_base``.
    """
    own = (model or "").lower().rsplit("/", 1)[-1].removeprefix("ft:").removeprefix("openai.")
    return next((encoding for start, encoding in ENCODINGS if own.startswith(start)), "o200k_base")


def ranks(name: str, folder: Traversable | None = None) -> dict[bytes, int]:
    """Read an encoding's shipped rank file.

    Args:
        name: Key of ``SHA256``.
        folder: Where the file lies; by default in the package.

    Returns:
        Token -> rank.

    Raises:
        RankFileError: The file is not there or is not the published one.
    """
    folder = folder or resources.files("tenfold") / "_shipped" / "tokens"
    file = folder / f"{name}.tiktoken.gz"
    try:
        content = gzip.decompress(file.read_bytes())
    except (OSError, EOFError) as error:
        raise RankFileError(f"{file}: cannot be read: {error}. Install tenfold again") from error
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise RankFileError(
            f"{file}: not the published rank file (sha256 {found}, expected {SHA256[name]}). Install tenfold again"
        )
    pairs = (line.split() for line in content.splitlines())
    return {a2b_base64(token): int(rank) for token, rank in pairs}


@lru_cache(maxsize=len(SHA256))
def encoding(name: str) -> Encoding:
    """Build an encoding from its shipped ranks; pattern and special tokens are tiktoken's own.

    Args:
        name: Key of ``SHA256``.

    Returns:
        The encoding; made once.

    Raises:
        RankFileError: The rank file is not the published one.
    """
    import tiktoken

    public = import_module("tiktoken_ext.openai_public")
    held = ranks(name)

    def loader(*_: object, **__: object) -> dict[bytes, int]:
        return held

    # tiktoken's definition, run with a loader that gives the ranks held here instead of fetching them.
    definition: Callable[[], dict[str, object]] = FunctionType(
        getattr(public, name).__code__, {**vars(public), "load_tiktoken_bpe": loader}
    )
    return tiktoken.Encoding(**definition())  # pyright: ignore[reportArgumentType] -- the definition's own keys


class Tokens:
    """Token ids of texts, those seen of late remembered: conversations repeat their beginning.

    Args:
        name: The encoding.
        budget: Bytes of ids to remember.
    """

    def __init__(self, name: str = BLOCK_ENCODING, budget: int = 1 << 26) -> None:
        self.name = name
        self._budget = budget
        self._held: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0

    def ids(self, texts: dict[bytes, str]) -> dict[bytes, bytes]:
        """Cut texts into tokens.

        Args:
            texts: Key (the text's hash) -> text.

        Returns:
            Key -> ids, as ``packed`` writes them.
        """
        found: dict[bytes, bytes] = {}
        for key in texts:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
                found[key] = held
        fresh = [key for key in texts if key not in found]
        for key, packed in zip(fresh, self._encoded([texts[key] for key in fresh]), strict=True):
            found[key] = packed
            self._keep(key, packed)
        return found

    def _encoded(self, texts: list[str]) -> Iterable[bytes]:
        parts = [[text[at : at + _LONGEST] for at in range(0, len(text), _LONGEST)] for text in texts]
        flat = [part for held in parts for part in held]
        encode = encoding(self.name)
        if _THREADS > 1 and sum(map(len, flat)) > _FEW:
            lists = iter(encode.encode_ordinary_batch(flat, num_threads=_THREADS))
        else:
            lists = map(encode.encode_ordinary, flat)
        for held in parts:
            yield b"".join(packed(next(lists)) for _ in held)

    def _keep(self, key: bytes, ids: bytes) -> None:
        self._held[key] = ids
        self._size += len(ids) + len(key)
        while self._size > self._budget:
            gone, old = self._held.popitem(last=False)
            self._size -= len(old) + len(gone)


def packed(ids: Iterable[int]) -> bytes:
    """Pack token ids.

    Args:
        ids: The ids.

    Returns:
        Four bytes each, little-endian.
    """
    held = array("I", ids)
    if sys.byteorder == "big":
        held.byteswap()
    return held.tobytes()


def count(ids: bytes) -> int:
    """Count packed ids.

    Args:
        ids: As ``packed`` gives them.

    Returns:
        How many.
    """
    return len(ids) // _TOKEN_BYTES
