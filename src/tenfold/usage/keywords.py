"""The keyword form of tenfold's own token names, for one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tenfold.errors import UsageError, near
from tenfold.store.schema import TOKEN_COLUMNS
from tenfold.usage import attributes
from tenfold.usage.paths import MAX_COUNT

# Input, output, cache reads, cache writes and the long ones among those.
Core: TypeAlias = tuple[int, int, int, int, int]


CORE_COLUMNS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens")


class Usage(Mapping[str, object]):
    """Token counts of one request by tenfold's names; what is left out is unknown.

    Args:
        input_tokens: All input tokens, cached and written ones included.
        output_tokens: All output tokens, reasoning included.
        cache_read_tokens: Input read from a prompt cache; part of ``input_tokens``.
        cache_write_tokens: Input written to a prompt cache; part of ``input_tokens``.
        cache_write_long_tokens: Written with the longer lifetime; part of ``cache_write_tokens``.
        **others: Any other count of the requests table: ``reasoning_tokens``, ``web_searches``, ...; or, instead of
            all of these, a span's attributes: ``**{"gen_ai.usage.input_tokens": 1200, ...}``.
    """

    __slots__ = ("_others", "_usual", "core")

    def __init__(
        self,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        cache_write_long_tokens: int | None = None,
        **others: int | None,
    ) -> None:
        self._usual = (input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cache_write_long_tokens)
        self._others = others
        for name in others:
            if name not in TOKEN_COLUMNS and name not in attributes.NAMES:
                raise UsageError(f'unknown token name "{name}".{near(name, TOKEN_COLUMNS)}')
        # What the single price call can multiply at once; None where it must look closer.
        self.core: Core | None = None if others and any(others.values()) else core_of(*self._usual)

    @property
    def _counts(self) -> dict[str, object]:
        named = {**dict(zip(CORE_COLUMNS, self._usual, strict=True)), **self._others}
        return {name: value for name, value in named.items() if value is not None}

    def __getitem__(self, name: str) -> object:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"Usage({', '.join(f'{name}={value}' for name, value in self._counts.items())})"


def core_of(whole: object, out: object, read: object = None, write: object = None, long: object = None) -> Core | None:
    """Check the five counts that most calls have.

    Args:
        whole: All input tokens.
        out: All output tokens.
        read: Cache reads; None is unknown and priced as part of the whole.
        write: Cache writes, likewise.
        long: Those with the longer lifetime, likewise.

    Returns:
        The counts; None where one is no count, unknown where it must be known, or impossible.
    """
    read, write, long = read or 0, write or 0, long or 0
    if (
        type(whole) is int
        and type(out) is int
        and type(read) is int
        and type(write) is int
        and type(long) is int
        and 0 <= long <= write
        and 0 <= read <= whole - write
        and whole < MAX_COUNT
        and 0 <= out < MAX_COUNT
    ):
        return whole, out, read, write, long
    return None


def core_of_plain(usage: Mapping[str, object]) -> Core | None:
    """Read the usual counts of a mapping by tenfold's own names.

    Args:
        usage: Any mapping.

    Returns:
        As ``core_of``; None where the mapping holds anything else.
    """
    get = usage.get
    read, write, long = get("cache_read_tokens"), get("cache_write_tokens"), get("cache_write_long_tokens")
    if len(usage) != 2 + (read is not None) + (write is not None) + (long is not None):
        return None
    return core_of(get("input_tokens"), get("output_tokens"), read, write, long)
