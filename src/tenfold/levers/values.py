"""Reading single values of an assumptions table: numbers stay exact decimals, and every refusal says what would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

from tenfold.errors import near

DECIMALS = 6


# Beyond any bill, and within what sums of it can hold.
_MOST = 10**12


class Range(NamedTuple):
    """A value with its low and high scenario; all three alike where a single number was given."""

    low: Decimal
    mid: Decimal
    high: Decimal


class Predicate(str):
    """A boolean SQL expression over requests, to be checked and tried like a ``where``."""

    __slots__ = ()


Value: TypeAlias = "str | int | Decimal | Range | Path | tuple[str, ...] | Mapping[str, Value] | None"
Reader: TypeAlias = Callable[[object], Value]


def _written(raw: object) -> str:
    """Write a refused value as it stands in the file."""
    if isinstance(raw, list | tuple):
        return f"[{', '.join(_written(one) for one in cast('list[object]', raw))}]"
    if isinstance(raw, Mapping):
        given = cast("Mapping[str, object]", raw)
        return f"{{ {', '.join(f'{key} = {_written(one)}' for key, one in given.items())} }}"
    if isinstance(raw, bool):
        return str(raw).lower()
    return str(raw) if isinstance(raw, Decimal) else repr(raw)


def amount(raw: object) -> Decimal:
    """Read a number of at least 0.

    Args:
        raw: What TOML, or a caller in Python, gave.

    Returns:
        The number as it was written.

    Raises:
        ValueError: It is no such number.
    """
    is_number = isinstance(raw, int | float | Decimal) and not isinstance(raw, bool)
    value = Decimal(str(raw)) if is_number else Decimal("NaN")
    if not value.is_finite() or value < 0:
        raise ValueError(f"must be a number of at least 0, not {_written(raw)}")
    if value > _MOST:
        raise ValueError(f"must be at most {_MOST:,}, not {_written(raw)}")
    if value != round(value, DECIMALS):
        raise ValueError(f"takes at most {DECIMALS} decimals, not {_written(raw)}")
    return value


def share(raw: object) -> Range:
    """Read a share from 0 to 1, or its scenarios ``[low, mid, high]``.

    Args:
        raw: What TOML, or a caller in Python, gave.

    Returns:
        The three scenarios.

    Raises:
        ValueError: A number is outside 0 to 1, or the three are not in order.
    """
    found = ratio(raw)
    if found.high > 1:
        raise ValueError(f"must lie between 0 and 1, not {_written(raw)}")
    return found


def ratio(raw: object) -> Range:
    """Read a ratio of at least 0, which may exceed 1, or its scenarios ``[low, mid, high]``.

    Args:
        raw: What TOML, or a caller in Python, gave.

    Returns:
        The three scenarios.

    Raises:
        ValueError: A number is below 0, or the three are not in order.
    """
    if not isinstance(raw, list | tuple):
        return Range(*[amount(raw)] * 3)
    parts = [amount(one) for one in cast("list[object]", raw)]
    if len(parts) != 3 or parts != sorted(parts):
        raise ValueError(f"must be a number or [low, mid, high] in rising order, not {_written(parts)}")
    return Range(*parts)


def choice(*words: str) -> Reader:
    """Make a reader of one of some words.

    Args:
        *words: The words.

    Returns:
        A reader that raises ValueError, with the near match, for anything else.
    """

    def read(raw: object) -> str:
        if raw not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {_written(raw)}.{near(str(raw), words)}")
        return str(raw)

    return read


def count(raw: object) -> int:
    """Read a whole number of at least 0.

    Args:
        raw: What TOML, or a caller in Python, gave.

    Returns:
        The number.

    Raises:
        ValueError: It is no such number.
    """
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
        raise ValueError(f"must be a whole number of at least 0, not {_written(raw)}")
    return raw


def flag(raw: object) -> bool:
    """Read true or false.

    Args:
        raw: What TOML, or a caller in Python, gave.

    Returns:
        Which.

    Raises:
        ValueError: It is neither.
    """
    found = raw if isinstance(raw, bool) else None
    if found is None:
        raise ValueError(f"must be true or false, not {_written(raw)}")
    return found


def table(readers: Mapping[str, Reader], required: Sequence[str] = ()) -> Reader:
    """Make a reader of a table within a table, which checks its own keys.

    Args:
        readers: Key to the reader of its value.
        required: Keys without which it says nothing.

    Returns:
        A reader that gives the keys that were written, and raises ValueError that names the key.
    """

    def read(raw: object) -> Value:
        given = cast("Mapping[str, object]", raw) if isinstance(raw, Mapping) else None
        if given is None:
            raise ValueError(f"must be a table, such as {{ {', '.join(f'{key} = ...' for key in readers)} }}")
        found: dict[str, Value] = {}
        for key, value in given.items():
            if key not in readers:
                raise ValueError(f'has no key "{key}".{near(key, readers)} It takes {", ".join(readers)}')
            try:
                found[key] = readers[key](value)
            except ValueError as error:
                raise ValueError(f"{key} {error}") from None
        for key in required:
            if key not in found:
                raise ValueError(f"needs {key}")
        return found

    return read


def text(raw: object) -> str:
    """Read a text.

    Args:
        raw: What TOML, or a caller in Python, gave.

    Returns:
        The text.

    Raises:
        ValueError: It is no text.
    """
    found = raw if isinstance(raw, str) else None
    if found is None:
        raise ValueError(f"must be a text in quotes, not {_written(raw)}")
    return found


def predicate(raw: object) -> Predicate:
    """Read a boolean SQL expression over requests.

    Args:
        raw: What TOML, or a caller in Python, gave.

    Returns:
        The text; ``assume.py`` checks it.

    Raises:
        ValueError: It is no text.
    """
    return Predicate(text(raw))


def words(raw: object) -> tuple[str, ...]:
    """Read a list of names.

    Args:
        raw: What TOML, or a caller in Python, gave.

    Returns:
        The names.

    Raises:
        ValueError: It is no list of texts.
    """
    found = cast("list[object]", raw) if isinstance(raw, list | tuple) else None
    if found is None or not all(isinstance(one, str) for one in found):
        raise ValueError(f'must be a list of names, such as ["batch_api"], not {_written(cast("object", raw))}')
    return tuple(cast("list[str]", found))


def path(raw: object) -> Path:
    """Read the place of a file.

    Args:
        raw: What TOML, or a caller in Python, gave.

    Returns:
        The path as written; ``assume.py`` takes it from the folder of the assumptions file, or from the working
        directory where the assumptions are a mapping.

    Raises:
        ValueError: It is no path.
    """
    if not isinstance(raw, str | Path) or not str(raw).strip():
        raise ValueError(f'must be the path of a file in quotes, such as "evals.csv", not {_written(raw)}')
    return Path(raw)
