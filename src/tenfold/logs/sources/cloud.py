"""Object stores: ``s3://``, ``gs://`` and ``az://``, listed and read through obstore, credentials from the environment.

Listing comes first; each object is then streamed to a file of its own when its turn comes, and an object whose version
the database already holds is not fetched at all.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from tenfold import extras
from tenfold.logs.sources.base import Answer, Source, SourceError, asked, kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from obstore import ObjectMeta
    from obstore.store import ObjectStore, RetryConfig

# Scheme -> class of the store, and the variables that name a server of one's own, the first one set counting.
_STORES = {
    "s3": ("S3Store", ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")),
    "gs": ("GCSStore", ("GOOGLE_BASE_URL",)),
    "az": ("AzureStore", ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")),
}
_URL = re.compile(rf"({'|'.join(_STORES)})://", re.IGNORECASE)
_GLOB = re.compile(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])")
_SIGNS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
# Signed links and tokens stand behind a "?", where a pattern has none of "name=".
_QUERY = re.compile(r"\?[\w.%-]+=")
_THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}
_CHUNK = 4 << 20
# A request may take as long as its object needs, but not stall.
_CLIENT = {"timeout": timedelta(hours=12), "read_timeout": timedelta(seconds=60)}
_RETRY: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_AGAIN = "Load again when the server is well"
# What the library says -> what it means, and the way out; the first match counts.
_MEANINGS = (
    (r"NoSuchBucket|ContainerNotFound|bucket does not exist", "there is no such bucket. Check the name"),
    (r"BadScheme", "plain http is used to this machine alone. Give the server an https address"),
    (
        r"//169\.254\.|//metadata|[Mm]issing credential|MissingAccount|Account must be specified",
        "the environment holds no credentials. Set AWS_*, GOOGLE_* or AZURE_* as the store's own tools take them",
    ),
    (
        r"status code: 40[13]|PermissionDenied|Unauthenticated",
        "access denied. Check the credentials in the environment, and that they may list and read there",
    ),
    (r"status code: 30\d|BareRedirect|PermanentRedirect", "the bucket is in another region. Set AWS_REGION"),
    (r"^Object at location|status code: 404", "there is no such object (any more). Check the name, or load again"),
    (r"kind: Connect|dns error", f"the server cannot be reached. Check the address and the network. {_AGAIN}"),
    (
        r"ContentRange|kind: (Decode|Body|Timeout|Interrupted)|unexpected end",
        f"the connection was cut before all was read. {_AGAIN}",
    ),
)


class Object(NamedTuple):
    """One object of a store.

    Args:
        store: Its bucket.
        key: Its key.
        name: Its URL.
        version: Its entity tag, version and size; empty where the store tells none.
        is_found: A pattern or a prefix named it.
    """

    store: ObjectStore
    key: str
    name: str
    version: str
    is_found: bool = True


def is_url(path: str) -> bool:
    """Tell the URL of an object store.

    Args:
        path: What the user named.

    Returns:
        Whether it is one.
    """
    return _URL.match(path) is not None


def find(url: str) -> list[Object]:
    """List the objects that a URL names: one, those a pattern matches (``*``, ``**``, ``?``), or all below a prefix.

    Args:
        url: ``SCHEME://BUCKET/KEY``.

    Returns:
        The objects by key; empty ones, which stand for folders, and hidden ones are left out of patterns and prefixes.

    Raises:
        SourceError: Nothing is there, or it may not be listed.
        MissingExtraError: The library is not installed.
    """
    scheme, bucket, key = _parts(url)
    extras.need("obstore", what=f"reading {scheme}://", extra="cloud")
    place = f"{scheme}://{bucket}"
    store = _asked(place, lambda: _store(scheme, bucket))
    prefix = key.rstrip("/")
    if _GLOB.search(key):
        prefix = key[: next(_GLOB.finditer(key)).start()].rpartition("/")[0]
        wanted = _matcher(key)
    else:
        if key and not key.endswith("/"):
            one = _asked(url, lambda: _head(store, key))
            if one is not None:
                return [Object(store, key, url, _version(one), is_found=False)]
        wanted = _below(prefix)
    objects = [
        Object(store, meta["path"], f"{place}/{meta['path']}", _version(meta))
        for meta in _asked(url, lambda: list(_listed(store, prefix)))
        if meta["size"] and wanted(meta["path"])
    ]
    if not objects:
        raise SourceError(f"{url}: no such object, and none below it or matching it. Check the name")
    return sorted(objects, key=lambda found: found.key)


def _parts(url: str) -> tuple[str, str, str]:
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    shown = f"{scheme}://..."  # nothing of a URL is shown that may hold a secret
    if "@" in bucket or ":" in bucket or _QUERY.search(rest):
        raise SourceError(
            f"{shown}: write SCHEME://BUCKET/KEY alone, without a user, a key, a port or a signature. Credentials and "
            "the server's address are taken from the environment (AWS_*, GOOGLE_*, AZURE_*)"
        )
    if not bucket or _GLOB.search(bucket):
        raise SourceError(f"{shown}: name one bucket, as in {scheme}://BUCKET/KEY")
    return scheme.lower(), bucket, key


def _store(scheme: str, bucket: str) -> ObjectStore:
    from obstore import store as stores

    made, variables = _STORES[scheme]
    server = urlsplit(next((os.environ[name] for name in variables if os.environ.get(name)), ""))
    options = {**_CLIENT, "allow_http": True} if server.hostname in _THIS_MACHINE else _CLIENT
    return cast("ObjectStore", getattr(stores, made)(bucket, client_options=options, retry_config=_RETRY))


def _head(store: ObjectStore, key: str) -> ObjectMeta | None:
    try:
        return store.head(key)
    except FileNotFoundError:
        return None


def _listed(store: ObjectStore, prefix: str) -> Iterator[ObjectMeta]:
    for page in store.list(prefix or None):
        yield from page


def _below(prefix: str) -> Callable[[str], bool]:
    start = len(prefix) + 1 if prefix else 0
    return lambda key: not _hidden(key[start:])


def _matcher(pattern: str) -> Callable[[str], bool]:
    parts = (
        _SIGNS[part] if part in _SIGNS else _set(part) if _GLOB.fullmatch(part) else re.escape(part)
        for part in _GLOB.split(pattern)
    )
    sought = re.compile("".join(parts), re.DOTALL)
    return lambda key: sought.fullmatch(key) is not None and (_hidden(pattern) or not _hidden(key))


def _set(part: str) -> str:
    return "[" + part[1:-1].replace("\\", "\\\\").replace("^", "\\^").replace("!", "^", int(part[1] == "!")) + "]"


def _hidden(key: str) -> bool:
    return any(part.startswith(".") for part in key.split("/"))


def _version(meta: ObjectMeta) -> str:
    """Write what says that an object is still the same; listings and answers differ in the quotes of a tag."""
    tag, version = (meta["e_tag"] or "").removeprefix("W/").strip('"'), meta["version"] or ""
    return f"{tag} {version} {meta['size']}" if tag or version else ""


def fetch(found: Object, folder: Path, is_over: Callable[[], bool]) -> Source:
    """Stream an object to a file.

    Args:
        found: The object.
        folder: Where to keep it.
        is_over: Asked between pieces: whether nobody waits for it any more.

    Returns:
        The file, with the version of what was read.

    Raises:
        SourceError: It is gone, may not be read, or broke off.
    """

    def pieces(stream: Iterator[bytes]) -> Iterator[bytes]:
        for piece in stream:
            if is_over():
                return
            yield piece

    def download() -> Source:
        result = found.store.get(found.key)
        file = kept(pieces(iter(result.stream(min_chunk_size=_CHUNK))), folder)
        size, whole = file.stat().st_size, result.meta["size"]
        if size != whole:
            raise ValueError(f"unexpected end after {size} of {whole} bytes")
        return Source(found.name, file, _version(result.meta), is_found=found.is_found)

    return _asked(found.name, download)


def _asked(name: str, call: Callable[[], Answer]) -> Answer:
    from obstore.exceptions import BaseError

    return asked(name, (BaseError, OSError, ValueError), _reason, call)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be kept: {error.strerror}"
    text = str(error)
    for said, meaning in _MEANINGS:
        if re.search(said, text):
            return meaning
    first = text.partition("\n")[0]
    return f"{first}. {_AGAIN}"
