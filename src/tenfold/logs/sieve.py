"""Lines that look good from lines that need a closer look, at the speed of a compiled JSON decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tenfold.logs.base import Tree

# A longer line is read by itself: the engine would need as much memory for every thread.
_LONGEST = 1 << 24


def sieve(
    lines: Iterable[tuple[int, bytes]], tree: Tree, unpacked: Sequence[str], good: BinaryIO, number_as: str
) -> tuple[int, list[tuple[int, bytes]]]:
    """Copy the lines that are objects with the values that a reader expects where it expects them.

    Args:
        lines: Number and bytes of each line.
        tree: The reader's raw values.
        unpacked: Names in it that may hold their object as JSON text.
        good: Takes the good lines, each with its number as a key of its own.
        number_as: That key.

    Returns:
        How many good lines there are, and the others; blank ones are left out.
    """
    decode = _decoder(tree, unpacked)
    odd: list[tuple[int, bytes]] = []
    kept = 0
    for number, line in lines:
        text = line.strip()
        if not text:
            continue
        if text[:1] != b"{" or text[1:2] == b"}" or not _is_good(text, decode):
            odd.append((number, line))
            continue
        good.write(b'{"%s":%d,' % (number_as.encode(), number) + text[1:] + b"\n")
        kept += 1
    good.flush()
    return kept, odd


def _is_good(line: bytes, decode: Callable[[bytes], object]) -> bool:
    if len(line) > _LONGEST or b"\0" in line:
        return False
    try:
        line.decode("utf-8")
        decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _decoder(tree: Tree, unpacked: Sequence[str]) -> Callable[[bytes], object]:
    plain: Tree = {name: "JSON" if name in unpacked else node for name, node in tree.items()}
    return msgspec.json.Decoder(_type(plain)).decode


def _type(node: str | Tree | list[Tree]) -> Any:  # noqa: ANN401 -- a type made at run time
    """Make the type that says where objects and lists must be; any value will do elsewhere."""
    if isinstance(node, str):  # (a union with Raw would take null alone)
        return dict[str, msgspec.Raw] | None if node.startswith("MAP") else msgspec.Raw
    if isinstance(node, list):
        return list[_type(node[0])] | None
    names = {f"f{place}": name for place, name in enumerate(node)}
    fields = [(field, _type(node[name]), None) for field, name in names.items()]
    return msgspec.defstruct("Record", fields, rename=names) | None
