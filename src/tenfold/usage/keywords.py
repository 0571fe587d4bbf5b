"""The keyword form of tenfold's own token names, for one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tenfold.errors import UsageError, near
from tenfold.store.schema import TOKEN_COLUMNS


class Usage(Mapping[str, object]):
    """Token counts of one request by tenfold's names; what is left out is unknown.

    Args:
        input_tokens: All input tokens, cached and written ones included.
        output_tokens: All output tokens, reasoning included.
        **others: Any other token column: ``cache_read_tokens``, ``cache_write_tokens``, ...
    """

    __slots__ = ("_counts",)

    def __init__(self, input_tokens: int | None = None, output_tokens: int | None = None, **others: int | None) -> None:
        counts: dict[str, object] = {"input_tokens": input_tokens, "output_tokens": output_tokens, **others}
        for name in others:
            if name not in TOKEN_COLUMNS:
                raise UsageError(f'unknown token name "{name}".{near(name, TOKEN_COLUMNS)}')
        self._counts = {name: value for name, value in counts.items() if value is not None}

    def __getitem__(self, name: str) -> object:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"Usage({', '.join(f'{name}={value}' for name, value in self._counts.items())})"
