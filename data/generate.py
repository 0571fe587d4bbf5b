"""Write the demo data: `python -m data.generate` from the repository's root regenerates `data/demo/`."""

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

from . import earlier, settings, truth, writers
from .earlier import make_earlier
from .harm import make_impossible, spoil
from .record import Request, Source
from .traffic import make_requests


class _Format(NamedTuple):
    """How one log file is written: its name, its line, its ids, its header."""

    file: str
    write: Callable[[Request], str]
    id_prefix: str
    header: tuple[str, ...] = ()


_FORMATS: dict[Source, _Format] = {
    "openai_chat": _Format("openai_chat.jsonl.gz", writers.openai_chat, "chatcmpl-LK"),
    "openai_responses": _Format("openai_responses.jsonl.gz", writers.openai_responses, "resp_LK"),
    "anthropic_messages": _Format("anthropic_messages.jsonl.gz", writers.anthropic_messages, "msg_LK"),
    "litellm_spendlogs": _Format(
        "litellm_spendlogs.csv.gz", writers.litellm_spendlogs, "chatcmpl-LP", writers.LITELLM_COLUMNS
    ),
    "gateway": _Format("gateway.csv", writers.gateway, "gw-", writers.GATEWAY_COLUMNS),
}

_LINE = 500
"""Longest line of `truth.json` that is not broken up, in characters."""

_FAILED_PREFIXES: dict[Source, str] = {"openai_chat": "req_LC", "anthropic_messages": "req_LK"}
"""The ids of failed calls where the API answers without a response id: those of the proxy."""


def write_demo(out: Path, *, seed: int = 7, scale: float = 1.0) -> None:
    """Write a quarter (2026-07-01 to 2026-10-01 UTC) of invented logs, and the truth about them.

    The same seed and scale give the same text in every file on every platform; the bytes of the `.gz` files
    may differ with the compression library, not what they hold.

    Args:
        out: Directory to write into; made if missing, files of the same names are replaced.
        seed: Of all random draws.
        scale: Factor on the number of requests; 1 gives about 27,000.
    """
    out.mkdir(parents=True, exist_ok=True)
    requests = make_requests(seed, scale)
    files: dict[str, object] = {}
    for source, form in _FORMATS.items():
        own = [request for request in requests if request.source == source]
        _number(own, source, form.id_prefix)
        if source == "openai_chat":
            make_impossible(own)
        header = [writers.csv_row(form.header).encode()] if form.header else []
        lines, harm = spoil(source, own, [form.write(request).encode() for request in own], scale=scale)
        for request in own:
            request.line += len(header)
        _write(out / form.file, b"\n".join(header + lines) + harm.end)
        files[form.file] = truth.file_truth(own, harm, physical_lines=len(header) + len(lines), header=bool(header))
    facts = {"seed": seed, "scale": scale, "files": files} | truth.totals(requests)
    _write(out / "truth.json", _layout(facts).encode())
    before = make_earlier(seed, scale)
    rows = [writers.csv_row(earlier.COLUMNS), *map(earlier.line, before)]
    _write(out / earlier.FILE, "\n".join(rows).encode() + b"\n")
    _write(out / "gateway.map.toml", settings.GATEWAY_MAP.encode())
    _write(out / "budgets.csv", settings.BUDGETS.encode())
    _write(out / "assume.toml", settings.assumptions().encode())
    _write(out / "assume_2026Q2.toml", settings.assumptions(effort_days=0.1).encode())
    _write(out / "slo.toml", settings.slo().encode())


def _number(requests: list[Request], source: Source, prefix: str) -> None:
    """Give each request of a file its id; a failed call of most APIs has only the proxy's."""
    for number, request in enumerate(requests, start=1):
        failed = request.status == "error"
        request.request_id = f"{_FAILED_PREFIXES.get(source, prefix) if failed else prefix}{number:06d}"


def _write(path: Path, content: bytes) -> None:
    """Write a file, compressed without name and time if its name ends in `.gz`."""
    if path.suffix != ".gz":
        path.write_bytes(content)
        return
    with path.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as packed:
        packed.write(content)


def _layout(facts: dict[str, object]) -> str:
    """Write JSON with one short object or list a line, so that a change shows as a small difference."""

    def block(value: object, indent: str) -> str:
        flat = json.dumps(value)
        if not isinstance(value, dict | list) or len(flat) + len(indent) <= _LINE:
            return flat
        deeper = indent + " "
        if isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            parts = [f"{json.dumps(name)}: {block(field, deeper)}" for name, field in fields.items()]
        else:
            parts = [block(item, deeper) for item in cast("list[object]", value)]
        return f"{flat[0]}\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}{flat[-1]}"

    return block(facts, "") + "\n"


def _main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description="Write tenfold's demo data.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "demo", help="directory")
    parser.add_argument("--seed", type=int, default=7, help="of all random draws (default 7)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of requests")
    given = parser.parse_args()
    write_demo(given.out, seed=given.seed, scale=given.scale)


if __name__ == "__main__":
    _main()
