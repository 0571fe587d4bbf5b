"""What an output's encoding lacks: typographic characters as ASCII, anything else written out, never an error."""

from __future__ import annotations

import codecs
import io
import sys

_AS_ASCII = {
    "·": "-", "–": "-", "—": "-", "−": "-", "‑": "-", "…": "...", "→": "->", "←": "<-", "×": "x", "÷": "/",
    "≤": "<=", "≥": ">=", "≈": "~", "±": "+-", "“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u202f": " ",
    "µ": "u", "μ": "u", "€": "EUR", "£": "GBP", "━": "-", "─": "-", "│": "|", "•": "*",
}  # fmt: skip
_HANDLER = "tenfold.plain"


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    written = (_AS_ASCII.get(one) or one.encode("ascii", "backslashreplace").decode() for one in found)
    return "".join(written), error.end


def write_what_can_be_written() -> None:
    """Let standard output and error take any text, whatever their encoding."""
    codecs.register_error(_HANDLER, _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not (stream.encoding or "").lower().startswith("utf"):
            stream.reconfigure(errors=_HANDLER)
