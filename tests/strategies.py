"""Hypothesis strategies: small price books as TOML text, and requests that sit on every edge of a book.

A request is a plain dict with the column names of the requests table; `ts` is an aware datetime in UTC or
None. Its counts are possible ones: the parts of a total never exceed it, whichever a book prices apart.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from oracle import EVER, Book, Entry, read_book

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]

MOST_TOKENS = 999_999_999  # a count beyond is taken for a mistake by whoever reads logs
INPUT_PARTS = ("cache_read", "cache_write", "input_audio", "input_image", "input_video")
OUTPUT_PARTS = ("reasoning", "output_audio", "output_image")
# Ids that test matching: one is another one's dated form, one has a slash of its own, one has capitals.
MODELS = ("model-a", "model-b", "model-b-2026-02-01", "lab/Model-c")
ALIASES = {"model-a": ["alias-a", "alias-a-20250101"], "lab/Model-c": ["model-c-latest"]}
STARTS = (
    None,
    date(2026, 1, 1),
    date(2026, 3, 13),
    datetime(2026, 8, 21, 12, 30, tzinfo=UTC),
    datetime(2026, 9, 1, 1, 0, tzinfo=timezone(timedelta(hours=2))),
)
ENDS = (date(2026, 10, 1), datetime(2026, 11, 30, 15, 0, tzinfo=UTC))
BANDS = ((0,), (0, 1_000), (0, 200_000), (0, 1_000, 272_000))
# USD per million tokens (per 1,000 searches). The fine ones use up all six decimals, 0.075 once a multiplier has
# three: a region factor would take one more, so they stay out of models that have one.
INPUT_PRICES, FINE_INPUT_PRICES = ("0.25", "1", "5", "30", "0"), ("0.075",)
PRICES, FINE_PRICES = ("0.1", "3.75", "64", "0"), ("0.000001",)
MULTIPLIERS = {
    "cache_read": ("0.1x", "0.025x", "0.5x", "1x"),
    "cache_write": ("1.25x", "1x"),
    "cache_write_long": ("2x",),
    "input_audio": ("1x", "2.5x"),
    "input_image": ("1x", "0.5x"),
    "input_video": ("1x",),
    "output": ("6x", "5x", "4x", "8x", "1x"),
    "reasoning": ("6x",),
    "output_audio": (),
    "output_image": (),
    "web_search": (),
}


def probe_instants(book: Book) -> list[datetime]:
    """Instants on both sides of every change in the book and of the UTC midnights around it; one noon."""
    probes = {datetime(2026, 11, 29, 12, tzinfo=UTC)}
    for entry in book.entries:
        for edge in (entry.valid_from, entry.valid_to):
            if edge is None or edge == EVER:
                continue
            midnight = edge.replace(hour=0, minute=0, second=0, microsecond=0)
            for instant in (edge, midnight, midnight + timedelta(days=1)):
                probes.update((instant - timedelta(microseconds=1), instant, instant + timedelta(microseconds=1)))
    return sorted(probes)


def requests(book: Book) -> st.SearchStrategy[Row]:
    """One request near an entry of the book: mostly priced by it, sometimes just beside it, or nowhere."""
    return _requests(book, book.entries, probe_instants(book))


@st.composite
def _requests(draw: st.DrawFn, book: Book, entries: list[Entry], probes: list[datetime]) -> Row:
    entry = draw(st.sampled_from(entries))
    days = st.datetimes(
        datetime(2025, 12, 1),
        datetime(2026, 12, 31),
        timezones=st.just(UTC),
    )
    # Within the entry's own time (unless a later list has replaced it), around any change, or on any day.
    home = entry.valid_from if entry.valid_from != EVER else probes[0] - timedelta(days=1)
    moments = st.just(home) | st.sampled_from(probes) | days
    row = {
        "provider": _mostly(draw, entry.provider, (entry.provider.upper(), "nowhere", None)),
        "model": _model(draw, entry, book),
        "service_tier": _tier(draw, entry, book),
        "region": _region(draw, entry, book),
        "ts": None if _one_in(draw, 20) else draw(moments),
        **_input(draw, entry, book),
        **_output(draw, entry),
        "web_searches": draw(st.sampled_from((None, 0, 1, 3) if "web_search" in entry.rates else (None, 0))),
        "is_billable": _mostly(draw, None, (True, False)),
        "gateway_cache_hit": _mostly(draw, None, (True, False)),
        "is_stream": draw(st.sampled_from((None, True, False))),
        "team": draw(st.sampled_from((None, "search", "support"))),
        "feature": draw(st.sampled_from((None, "chat", "digest"))),
    }
    return {**row, "input_tokens": None, "output_tokens": None} if _one_in(draw, 20) else row


@st.composite
def logs(draw: st.DrawFn, book: Book, min_size: int = 0, max_size: int = 30) -> list[Row]:
    """Requests with ids r0000, r0001, ... in drawn order."""
    rows = draw(st.lists(requests(book), min_size=min_size, max_size=max_size))
    return [{"request_id": f"r{number:04d}", **row} for number, row in enumerate(rows)]


@st.composite
def books_and_logs(draw: st.DrawFn, max_size: int = 30, min_size: int = 0) -> tuple[str, list[Row]]:
    """The TOML text of a book, and requests around its edges."""
    text = draw(price_files())
    return text, draw(logs(read_book([text]), min_size=min_size, max_size=max_size))


@st.composite
def price_files(draw: st.DrawFn, provider: str = "openai") -> str:
    """One price file: up to three models with tiers, dated lists, bands, regions, factors, ambiguous cells."""
    models = draw(st.lists(st.sampled_from(MODELS), min_size=1, max_size=3, unique=True))
    factored = draw(st.sets(st.sampled_from(models)))
    lines = [f'provider = "{provider}"', 'region_neutral = ["global"]']
    for model in models:
        tiers = ["standard", *draw(st.sets(st.sampled_from(("batch", "flex")), max_size=1))]
        places = [(tier, "") for tier in sorted(tiers)] + [("standard", "apac")] * _one_in(draw, 3)
        for tier, region in places:
            starts = draw(st.lists(st.sampled_from(STARTS), min_size=1, max_size=2, unique=True))
            for start in starts:
                # The first list of a file always applies, so that no book is empty.
                is_first = len(lines) == 2
                status = "confirmed" if is_first else _mostly(draw, "confirmed", ("announced", "withdrawn"))
                dates = [f"valid_from = {start.isoformat()}"] if start else []
                dates += [f"valid_to = {draw(st.sampled_from(ENDS)).isoformat()}"] if _one_in(draw, 6) else []
                for above in draw(st.sampled_from(BANDS)):
                    lines += _entry(draw, model, tier, region, is_factored=model in factored)
                    lines += [*dates, f'status = "{status}"', f"above_input_tokens = {above}"]
    if factored:
        names = ", ".join(f'"{model}"' for model in sorted(factored))
        lines += ["[[region_factor]]", 'region = "eu"', 'factor = "1.1x"', f"models = [{names}]"]
        lines += ['source = "drawn"', "checked = 2026-11-29"]
        lines += ["valid_from = 2026-02-14"] if draw(st.booleans()) else []
    return "\n".join(lines) + "\n"


def _entry(draw: st.DrawFn, model: str, tier: str, region: str, *, is_factored: bool) -> list[str]:
    lines = [
        "[[price]]",
        f'model = "{model}"',
        f"aliases = {ALIASES.get(model, [])}",
        f'service_tier = "{tier}"',
    ]
    lines += [f'region = "{region}"'] if region else []
    lines += ['source = "drawn"', "checked = 2026-11-29"]
    if _one_in(draw, 8):
        return [*lines, 'ambiguous = "two sources differ"']
    if _one_in(draw, 10):
        return [*lines, "input = 0", "output = 0", "cache_read = 0"]
    lines.append(f"input = {draw(st.sampled_from(INPUT_PRICES + FINE_INPUT_PRICES * (not is_factored)))}")
    for name, multipliers in MULTIPLIERS.items():
        absent = ("",) * (0 if name == "output" else 3)
        quoted = tuple(f'"{multiplier}"' for multiplier in multipliers)
        price = draw(st.sampled_from(absent + quoted + PRICES + FINE_PRICES * (not is_factored)))
        lines += [f"{name} = {price}"] if price else []
    return lines


def _one_in(draw: st.DrawFn, n: int) -> bool:
    return draw(st.integers(1, n)) == n


def _mostly(draw: st.DrawFn, usual: str | None, rare: Sequence[Any]) -> Any:
    return draw(st.sampled_from(rare)) if _one_in(draw, 20) else usual


def _model(draw: st.DrawFn, entry: Entry, book: Book) -> str | None:
    aliases = [alias for (provider, alias), model in book.aliases.items() if (provider, model) == _name(entry)]
    name = draw(st.sampled_from([entry.model, *aliases]))
    forms = (
        name.upper(),
        f"{entry.provider}/{name}",
        f"{name}-2026-03-05",
        f"{name}-20260305",
        f"{name}@20260305",
    )
    if name.startswith("ft:"):  # a fine-tuned model's id has rules of its own
        forms = (name.upper(), f"{entry.provider}/{name}")
    strangers = (f"elsewhere/{name}", f"{name}-mini", name[:-1], "unheard-of", "", None)
    return _mostly(draw, draw(st.sampled_from((name, name, *forms))), strangers)


def _name(entry: Entry) -> tuple[str, str]:
    """Provider and model id of an entry."""
    return entry.provider, entry.model


def _tier(draw: st.DrawFn, entry: Entry, book: Book) -> str | None:
    words = (None, "default", "auto", "on_demand", "standard") if entry.tier == "standard" else (entry.tier,)
    others = sorted({other.tier for other in book.entries})
    return _mostly(draw, draw(st.sampled_from(words)), (*others, entry.tier.upper(), "unheard-of"))


def _region(draw: st.DrawFn, entry: Entry, book: Book) -> str | None:
    neutral = sorted(book.neutral_regions.get(entry.provider, set()))
    usual = draw(st.sampled_from((entry.region, entry.region.upper()) if entry.region else (None, None, *neutral)))
    return _mostly(draw, usual, (*sorted({other.region for other in book.entries if other.region}), "mars"))


def _input(draw: st.DrawFn, entry: Entry, book: Book) -> Row:
    edges = {0, 1}
    for other in book.entries:
        if _name(other) == _name(entry) and other.above:
            edges |= {other.above - 1, other.above, other.above + 1}
    total = _total(draw, sorted(edges))
    row = _parts(draw, entry, total, INPUT_PARTS)
    written = row["cache_write_tokens"]
    long = None if written is None else _part(draw, written, is_likely="cache_write_long" in entry.rates)
    return {"input_tokens": total, **row, "cache_write_long_tokens": long}


def _output(draw: st.DrawFn, entry: Entry) -> Row:
    total = _total(draw, [0, 1])
    return {"output_tokens": total, **_parts(draw, entry, total, OUTPUT_PARTS)}


def _total(draw: st.DrawFn, edges: list[int]) -> int | None:
    return None if _one_in(draw, 20) else draw(st.sampled_from(edges) | st.integers(0, MOST_TOKENS))


def _parts(draw: st.DrawFn, entry: Entry, total: int | None, names: Sequence[str]) -> Row:
    """Parts that together never exceed the total; parts without a rate are mostly absent."""
    rest = 100 if total is None else total
    row: Row = {}
    for name in names:
        part = _part(draw, rest, is_likely=name in entry.rates)
        row[f"{name}_tokens"] = part
        rest -= part or 0
    return row


def _part(draw: st.DrawFn, rest: int, *, is_likely: bool) -> int | None:
    if not is_likely and not _one_in(draw, 30):
        return draw(st.sampled_from((None, 0)))
    return draw(st.sampled_from((None, 0, min(1, rest), rest)) | st.integers(0, rest))
