"""What goes wrong with a log file: broken lines, impossible counts, exports that overlap."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .record import Flag, Request, Source

RejectKind: TypeAlias = Literal["truncated_json", "not_an_object", "invalid_utf8"]

_BROKEN: tuple[tuple[float, RejectKind, bytes], ...] = (
    (0.13, "not_an_object", b"[]"),
    (0.37, "truncated_json", b'{"id":"chatcmpl-LKX1","object":"chat.completion","created":17861'),
    (0.71, "invalid_utf8", b'\xff\xfe{"id":"chatcmpl-LKX2","object":"chat.completion"}'),
    (1.0, "truncated_json", b'{"id":"chatcmpl-LKX3","object":"chat.completion","usage":{"prompt_tok'),
)
"""Where in the file (share of its requests), what, and the line; the last one lacks its newline, too."""

_IMPOSSIBLE: tuple[tuple[float, Flag], ...] = (
    (0.22, "bad_count"),
    (0.64, "bad_count"),
    (0.29, "cache_gt_input"),
    (0.52, "cache_gt_input"),
    (0.83, "cache_gt_input"),
)

_OVERLAPS: dict[Source, tuple[int, int]] = {"openai_chat": (62, 64), "anthropic_messages": (31, 35)}
"""Source: first day of an export (from 0), and how many requests it repeats from the one before."""


@dataclass(frozen=True, slots=True)
class Harm:
    """What was done to one file, by physical line number from 1."""

    rejected: tuple[tuple[int, RejectKind], ...]
    duplicates: tuple[int, ...]
    end: bytes


def make_impossible(requests: list[Request]) -> None:
    """Mark a few Chat Completions requests whose counts the writer will spoil.

    Args:
        requests: The requests of that file, by start.
    """
    sound = [request for request in requests if request.counted]
    for share, flag in _IMPOSSIBLE:
        if sound:
            sound[int(share * len(sound))].flag = flag


def spoil(source: Source, requests: list[Request], lines: list[bytes], *, scale: float) -> tuple[list[bytes], Harm]:
    """Repeat and break lines as overlapping exports and killed writers do, and number all lines.

    Args:
        source: The format; only Chat Completions get broken lines.
        requests: Requests by start; their `line` is set to the line where they stand first.
        lines: The line of each, without newlines.
        scale: Factor on the number of repeated lines.

    Returns:
        The physical lines, and what was done to them.
    """
    day, count = _OVERLAPS.get(source, (0, 0))
    boundary = next((i for i, request in enumerate(requests) if request.ts_ms >= day * 86_400_000), 0)
    with_id = [i for i in range(boundary) if requests[i].status != "error"]
    repeated = with_id[-max(1, round(count * scale)) :] if count else []
    broken = _BROKEN if source == "openai_chat" else ()
    before: dict[int, list[tuple[RejectKind, bytes]]] = {}
    for share, kind, line in broken:
        before.setdefault(int(share * len(requests)), []).append((kind, line))

    physical: list[bytes] = []
    rejected: list[tuple[int, RejectKind]] = []
    duplicates: list[int] = []
    for index in range(len(requests) + 1):
        for kind, line in before.get(index, []):
            physical.append(line)
            rejected.append((len(physical), kind))
        if index == boundary:
            for earlier in repeated:
                physical.append(lines[earlier])
                duplicates.append(len(physical))
        if index < len(requests):
            physical.append(lines[index])
            requests[index].line = len(physical)
    return physical, Harm(tuple(rejected), tuple(duplicates), b"" if broken else b"\n")
