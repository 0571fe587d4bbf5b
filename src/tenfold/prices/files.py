"""Where price files lie: the shipped ones in the package, a user's own in any folder."""

from __future__ import annotations

import hashlib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from tenfold.errors import PriceFileError

CACHING = "caching.toml"
# What self-hosting is computed from: no token price, so no card changes with it.
HOSTING = ("gpus.toml", "gpu_prices.toml", "models.toml", "frameworks.toml")


def shipped() -> Traversable:
    """Find the shipped price folder, in a wheel and in a checkout alike.

    Returns:
        The folder.
    """
    return resources.files("tenfold._shipped") / "pricing"


def toml_files(folder: Traversable | Path) -> list[tuple[str, bytes]]:
    """Read the TOML files of a folder.

    Args:
        folder: Folder of price files.

    Returns:
        Pairs of file name and bytes, sorted by name.

    Raises:
        PriceFileError: The folder is missing or holds no TOML file.
    """
    if not folder.is_dir():
        raise PriceFileError(f"{folder}: no such folder of price files")
    items = [item for item in folder.iterdir() if item.name.lower().endswith(".toml") and item.is_file()]
    for item in items:
        if item.name != item.name.lower():
            raise PriceFileError(f"{item.name}: price files have names in lower case; rename it to {item.name.lower()}")
    found = sorted((item.name, item.read_bytes()) for item in items)
    if not found:
        raise PriceFileError(f"{folder}: no .toml file in it")
    return found


def caching_of(files: list[tuple[str, bytes]]) -> bytes:
    """Find the prompt-cache rules that go with the price files of a whole book.

    Args:
        files: Pairs of file name and bytes.

    Returns:
        Contents of their ``caching.toml``; of the shipped one where there is none among them: how a provider caches is
        no price of one's own.
    """
    own = dict(files).get(CACHING)
    return (shipped() / CACHING).read_bytes() if own is None else own


def version_of(files: list[tuple[str, bytes]]) -> str:
    """Hash price files to a card version.

    Args:
        files: Pairs of name and bytes.

    Returns:
        Twelve hexadecimal digits of the SHA-256 over names and contents of all that token prices come from.
    """
    digest = hashlib.sha256()
    for name, content in files:
        if name in HOSTING:
            continue
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]
