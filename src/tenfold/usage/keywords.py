"""The keyword form of tenfold's own token names, for one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tenfold.errors import UsageError, near
from tenfold.store.schema import TOKEN_COLUMNS
from tenfold.usage.normalise import MAX_COUNT

# Input, output, cache reads, cache writes and the long ones among those.
Core: TypeAlias = tuple[int, int, int, int, int]


class Usage(Mapping[str, object]):
    """Token counts of one request by tenfold's names; what is left out is unknown.

    Args:
        input_tokens: All input tokens, cached and written ones included.
        output_tokens: All output tokens, reasoning included.
        cache_read_tokens: Input read from a prompt cache; part of ``input_tokens``.
        cache_write_tokens: Input written to a prompt cache; part of ``input_tokens``.
        cache_write_long_tokens: Written with the longer lifetime; part of ``cache_write_tokens``.
        **others: Any other count of the requests table: ``reasoning_tokens``, ``web_searches``, ...
    """

    __slots__ = ("_counts", "core")

    def __init__(
        self,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        cache_write_long_tokens: int | None = None,
        **others: int | None,
    ) -> None:
        counts: dict[str, object] = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cache_read_tokens": cache_read_tokens,
            "cache_write_tokens": cache_write_tokens,
            "cache_write_long_tokens": cache_write_long_tokens,
            **others,
        }
        for name in others:
            if name not in TOKEN_COLUMNS:
                raise UsageError(f'unknown token name "{name}".{near(name, TOKEN_COLUMNS)}')
        self._counts = {name: value for name, value in counts.items() if value is not None}
        # What the single price call can multiply at once; None where it must look closer.
        self.core: Core | None = None
        if not any(others.values()):
            self.core = core_of(
                input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cache_write_long_tokens
            )

    def __getitem__(self, name: str) -> object:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"Usage({', '.join(f'{name}={value}' for name, value in self._counts.items())})"


def core_of(whole: object, out: object, read: object = 0, write: object = 0, long: object = 0) -> Core | None:
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
        and 0 <= out < MAX_COUNT
        and 0 <= long <= write
        and 0 <= read <= whole - write
        and whole < MAX_COUNT
    ):
        return whole, out, read, write, long
    return None
