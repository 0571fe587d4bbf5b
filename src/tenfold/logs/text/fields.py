"""What readers and the projection know of text: which leaves hold it, and which columns come from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tenfold.logs.base import TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.logs.base import Reader

# Members of the struct column `TEXT`.
MEMBERS: Final[Mapping[str, str]] = {
    "prompt_hash": "VARCHAR",
    "params_hash": "VARCHAR",
    "response_hash": "VARCHAR",
    "prefix_hashes": "VARCHAR[]",
    "prefix_block_tokens": "INTEGER",
    "input_tokens": "BIGINT",
    "output_tokens": "BIGINT",
    "not_tokenised": "BOOLEAN",
}
CONTENT: Final = ("prompt_hash", "params_hash", "response_hash", "prefix_hashes", "prefix_block_tokens")
TYPE: Final = f"STRUCT({', '.join(f'{name} {kind}' for name, kind in MEMBERS.items())})"


def with_text(reader: Reader) -> Reader:
    """Let a reader read its text too.

    Args:
        reader: A format's reader.

    Returns:
        It, with the leaves of its text and the reshape that brings them along; itself where the format has no text.
    """
    text = reader.text
    if text is None:
        return reader
    beside, context = reader.beside, reader.context
    if text.reads_beside:
        context = " OR ".join(f"coalesce({condition}, false)" for condition in (*beside, context))
        beside = ()
    return replace(
        reader,
        leaves={**reader.leaves, **text.leaves},
        reshape=text.reshape.replace("{reshaped}", reader.reshape) if text.reshape else reader.reshape,
        beside=beside,
        context=context,
    )


def without_text(reader: Reader) -> Reader:
    """Let a reader leave its text unread.

    Args:
        reader: A format's reader.

    Returns:
        It, without text.
    """
    return replace(reader, text=None) if reader.text else reader


def text_fields(reader: Reader) -> dict[str, str]:
    """Give what the projection reads of the texts of a staged file.

    Args:
        reader: Its reader.

    Returns:
        Member of ``TEXT`` -> SQL over the raw row ``r``; lists as JSON text, NULL where the format has no text.
    """
    if reader.text is None:
        return dict.fromkeys(MEMBERS, "NULL")
    held = {name: f'r."{TEXT}".{name}' for name in MEMBERS}
    return held | {"prefix_hashes": f"to_json({held['prefix_hashes']})::VARCHAR"}


def content_fields(own: Mapping[str, str], derived: Mapping[str, str]) -> dict[str, str]:
    """Give the content columns: as the source has them, else as its text gives them.

    Args:
        own: The reader's columns.
        derived: What ``text_fields`` gave.

    Returns:
        Column -> SQL over ``r``.
    """
    found = {name: f"coalesce({own.get(name, 'NULL')}, {derived[name]})" for name in CONTENT}
    blocks, size = own.get("prefix_hashes", "NULL"), own.get("prefix_block_tokens", "NULL")
    # A block's size is that of the hashes beside it.
    size = (
        f"CASE WHEN ({blocks}) IS NULL THEN coalesce({size}, {derived['prefix_block_tokens']}::VARCHAR) ELSE {size} END"
    )
    return found | {"prefix_block_tokens": size}
