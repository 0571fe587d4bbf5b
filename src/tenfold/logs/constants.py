"""Values that a load or a map states for every row: checked against their column's type."""

from __future__ import annotations

import math

from tenfold.errors import LogFormatError
from tenfold.store import schema

_TYPES = {column.name: column.type for column in schema.REQUESTS}
_WORDS = {"true": "true", "yes": "true", "1": "true", "false": "false", "no": "false", "0": "false"}
_TRUTH, _WHOLE, _NUMBER = "true or false", "a whole number of at least 0", "a number"


def constant(where: str, column: str, value: str) -> str:
    """Check one stated value.

    Args:
        where: Who states it, for the message.
        column: Requests column.
        value: The value as written.

    Returns:
        The value, as the store reads it.

    Raises:
        LogFormatError: It cannot be read as the column's type; names column and value.
    """
    kind = _TYPES[column]
    if kind == "BOOLEAN":
        found, wanted = _WORDS.get(value.strip().lower()), _TRUTH
    elif kind in {"INTEGER", "BIGINT"}:
        found, wanted = value.strip() if value.strip().isdecimal() and int(value) < 2**31 else None, _WHOLE
    elif kind == "DOUBLE" or kind.startswith("DECIMAL"):
        found, wanted = value if _is_number(value) else None, _NUMBER
    else:
        return value
    if found is None:
        raise LogFormatError(f'{where}: {column} = "{value}" cannot be read: it takes {wanted}')
    return found


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
