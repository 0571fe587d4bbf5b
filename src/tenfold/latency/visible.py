"""Names and texts of logs made safe to show: a control character can drive a terminal, and no chart can draw one."""

from __future__ import annotations

# Tab, line feed, carriage return and the separators of lines and paragraphs: a space.
_SPACES = (0x09, 0x0A, 0x0D, 0x85, 0x2028, 0x2029)
_SHOWN = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | dict.fromkeys(_SPACES, " ")
# What ``visible`` changes, as a regular expression.
CONTROL = r"[\p{Cc}\x{2028}\x{2029}]"


def visible(text: str) -> str:
    r"""Write out control characters.

    Args:
        text: As it was logged.

    Returns:
        The text with those of C0 and C1 as ``\x1b``, so that different names stay different; of line ends and tabs a
        space.
    """
    return text if text.isprintable() else text.translate(_SHOWN)
