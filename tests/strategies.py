"""Hypothesis strategies: small price books as TOML text, and requests that sit on every edge of a book.

A request is a plain dict with the column names of the requests table; `ts` is an aware datetime in UTC or
None. Its counts are possible ones: no part exceeds its total, and parts overlap only where they may: media that
were cached, whose count is not always known.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st
from oracle import EVER, Book, Entry, find_region, read_book

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]

MOST_TOKENS = 999_999_999  # a count beyond is taken for a mistake by whoever reads logs
INPUT_PARTS = ("cache_read", "cache_write", "input_audio", "input_image", "input_video")
OUTPUT_PARTS = ("reasoning", "output_audio", "output_image", "output_video")
MEDIA = ("audio", "image", "video")
# Ids that test matching: one is another one's dated form, one has a slash of its own, one has capitals.
MODELS = ("model-a", "model-b", "model-b-2026-02-01", "lab/Model-c")
ALIASES = {"model-a": ["alias-a", "alias-a-20250101"], "lab/Model-c": ["model-c-latest"]}
# Patterns, with a name that only they match; the second would catch another model's dated forms, were it not the last
# resort, and `.` and `?` in a pattern are themselves.
PATTERNS = {
    "model-a": (["Model-A-preview-*"], ("model-a-preview-", "model-a-preview-x/7")),
    "model-b": (["model-a-2*", "my-b?.5-*-exp"], ("model-a-2x", "my-b?.5-0-exp", "my-b?.5--exp")),
    "lab/Model-c": (["model-c"], ("Model-C",)),
}
STARTS = (
    None,
    date(2026, 1, 1),
    date(2026, 3, 13),
    datetime(2026, 8, 21, 12, 30, tzinfo=UTC),
    datetime(2026, 9, 1, 1, 0, tzinfo=timezone(timedelta(hours=2))),
)
ENDS = (date(2026, 10, 1), datetime(2026, 11, 30, 15, 0, tzinfo=UTC))
# Windows that are drawn together are never open at once. Berlin's clock changes on Sundays between 02:00 and 03:00.
WINDOWS = (
    (
        'weekdays = ["mon", "tue", "wed", "thu"]\nhours = ["09:00-12:00", "13:15-18:00"]\nzone = "Europe/Berlin"',
        'weekdays = ["sun"]\nhours = ["02:00-03:30"]\nzone = "Europe/Berlin"',
    ),
    ('hours = ["00:30-04:00", "22:00-24:00"]\nzone = "UTC"',),
    ('weekdays = ["sat", "sun"]\nzone = "America/New_York"', 'weekdays = ["mon"]\nzone = "America/New_York"'),
    ('hours = ["04:30-05:45"]\nzone = "Asia/Kathmandu"',),
)
WINDOW_DAYS = [date(2026, *day) for day in ((3, 28), (3, 29), (3, 30), (6, 5), (6, 6), (6, 8), (10, 25), (10, 26))]
# Words for regions: the first table of a file whose models fit decides, before `region_neutral` does.
REGION_ALIASES = (
    'words = ["Frankfurt", "eu-west-1"]\nregion = "eu"',
    'words = ["eu-west-1", "global"]\nregion = "apac"\nmodels = ["LAB/*", "*-b"]',
    'words = ["home", "eu"]\nregion = ""\nmodels = ["*-a"]',
    'words = ["frankfurt", "tokyo"]\nregion = "APAC"',
)
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
# Prices of what few models have. Some by time are half a pUSD a unit, so that halves round to the even one.
RARE_PRICES = {
    "cache_read_audio": ('"0.1x"', "0.4", "0"),
    "cache_read_image": ('"0.5x"', "0.2"),
    "cache_read_video": ('"0.1x"', "0.3"),
    "output_video": ('"8x"', "64"),
    "web_search_preview": ("25", "0.5", "0"),
    "file_search": ("2.5",),
    "maps_search": ("14", "0.000001"),
    "code_session": ("0.03",),
    "request": ("5", "0.5", "0"),
    "image": ("0.04", "0.003"),
    "page": ("1", "2"),
    "character": ("15", "0.000001"),
    "audio_hour": ("0.111", "0.0000018", "0.36"),
    "output_hour": ("1.5", "0.0000018", "0.7"),
    "cache_storage": ("4.5", "0.0018", "1"),
}
AUDIO_STEPS = ("", "min_audio_s = 10", "round_audio_s = 6", "min_audio_s = 10\nround_audio_s = 15")
COUNTED = {  # the columns of those that are no tokens
    "web_search_preview": "web_searches_preview",
    "file_search": "file_searches",
    "maps_search": "maps_searches",
    "code_session": "code_sessions",
    "image": "images",
    "page": "pages",
    "character": "characters",
    "audio_hour": "input_audio_ms",
    "output_hour": "output_media_ms",
    "cache_storage": "cache_storage_token_s",
}
# Calls and pieces stay below what a request could cost (9.2 million USD is as far as an INT64 of pUSD goes).
MOST = {
    "characters": MOST_TOKENS,
    "input_audio_ms": MOST_TOKENS,
    "output_media_ms": MOST_TOKENS,
    "cache_storage_token_s": MOST_TOKENS,
}


def probe_instants(book: Book) -> list[datetime]:
    """Instants on both sides of every change in the book and of the UTC midnights around it; one noon; window edges."""
    return sorted({*_changes(book), *(instant for entry in book.entries for instant in window_edges(entry))})


def _changes(book: Book) -> list[datetime]:
    probes = {datetime(2026, 11, 29, 12, tzinfo=UTC)}
    for entry in book.entries:
        for edge in (entry.valid_from, entry.valid_to):
            if edge is None or edge == EVER:
                continue
            midnight = edge.replace(hour=0, minute=0, second=0, microsecond=0)
            for instant in (edge, midnight, midnight + timedelta(days=1)):
                probes.update(_around(instant))
    return sorted(probes)


def window_edges(entry: Entry) -> list[datetime]:
    """Instants on both sides of where an entry's window opens or closes, on a few days; the clock changes on some."""
    if entry.window is None:
        return []
    zone = ZoneInfo(entry.window.zone)
    minutes = {minute for span in entry.window.minutes for minute in span}
    walls = [datetime.combine(day, time(), tzinfo=zone) + timedelta(minutes=m) for day in WINDOW_DAYS for m in minutes]
    return sorted({instant for wall in walls for instant in _around(wall.astimezone(UTC))})


def _around(instant: datetime) -> tuple[datetime, ...]:
    return instant - timedelta(microseconds=1), instant, instant + timedelta(microseconds=1)


def _home(entry: Entry, probes: list[datetime]) -> datetime:
    """An instant within the entry's own time, unless a later list has replaced it."""
    start = entry.valid_from if entry.valid_from != EVER else probes[0] - timedelta(days=9)
    hours = (start + timedelta(hours=hour) for hour in range(24 * 8))
    return next((at for at in hours if entry.window is None or entry.window.is_open(at)), start)


def requests(book: Book) -> st.SearchStrategy[Row]:
    """One request near an entry of the book: mostly priced by it, sometimes just beside it, or nowhere."""
    return _requests(book, book.entries, _changes(book))


@st.composite
def _requests(draw: st.DrawFn, book: Book, entries: list[Entry], probes: list[datetime]) -> Row:
    entry = draw(st.sampled_from(entries))
    days = st.datetimes(
        datetime(2025, 12, 1),
        datetime(2026, 12, 31),
        timezones=st.just(UTC),
    )
    # Within the entry's own time, around any change or its window's edges, or on any day.
    moments = st.just(_home(entry, probes)) | st.sampled_from(probes) | days
    if entry.window is not None:
        moments |= st.sampled_from(window_edges(entry))
    row = {
        "provider": _mostly(draw, entry.provider, (entry.provider.upper(), "nowhere", None)),
        "model": _model(draw, entry, book),
        "service_tier": _tier(draw, entry, book),
        "region": _region(draw, entry, book),
        "ts": None if _one_in(draw, 20) else draw(moments),
        **_input(draw, entry, book),
        **_output(draw, entry),
        "web_searches": draw(st.sampled_from((None, 0, 1, 3) if "web_search" in entry.rates else (None, 0))),
        **_counted(draw, entry),
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
    """One price file: up to three models with tiers, dated lists, bands, windows, regions, factors, ambiguous cells."""
    models = draw(st.lists(st.sampled_from(MODELS), min_size=1, max_size=3, unique=True))
    factored = draw(st.sets(st.sampled_from(models)))
    lines = [f'provider = "{provider}"', 'region_neutral = ["global"]']
    for model in models:
        tiers = ["standard", *draw(st.sets(st.sampled_from(("batch", "flex")), max_size=1))]
        places = [(tier, "") for tier in sorted(tiers)] + [("standard", "apac")] * _one_in(draw, 3)
        for tier, region in places:
            for window in _windows(draw):
                starts = draw(st.lists(st.sampled_from(STARTS), min_size=1, max_size=2, unique=True))
                for start in starts:
                    # The first list of a file always applies, so that no book is empty.
                    is_first = len(lines) == 2
                    status = "confirmed" if is_first else _mostly(draw, "confirmed", ("announced", "withdrawn"))
                    dates = [f"valid_from = {start.isoformat()}"] if start else []
                    dates += [f"valid_to = {draw(st.sampled_from(ENDS)).isoformat()}"] if _one_in(draw, 6) else []
                    for above in draw(st.sampled_from(BANDS)):
                        lines += _entry(draw, model, tier, region, is_factored=model in factored)
                        lines += [*dates, window, f'status = "{status}"', f"above_input_tokens = {above}"]
    if factored:
        names = ", ".join(f'"{model}"' for model in sorted(factored))
        lines += ["[[region_factor]]", 'region = "eu"', 'factor = "1.1x"', f"models = [{names}]"]
        lines += ['source = "drawn"', "checked = 2026-11-29"]
        lines += ["valid_from = 2026-02-14"] if draw(st.booleans()) else []
    aliases = draw(st.lists(st.sampled_from(REGION_ALIASES), max_size=3, unique=True))
    for alias in aliases:
        lines += ["[[region_alias]]", alias, 'source = "drawn"', "checked = 2026-11-29"]
    return "\n".join(lines) + "\n"


def _windows(draw: st.DrawFn) -> tuple[str, ...]:
    """The windows a tier and region has lists for: mostly none of them but all times, never none at all."""
    if not _one_in(draw, 4):
        return ("",)
    windows = draw(st.sampled_from(WINDOWS))
    return windows if _one_in(draw, 6) else ("", *windows)


def _entry(draw: st.DrawFn, model: str, tier: str, region: str, *, is_factored: bool) -> list[str]:
    lines = [
        "[[price]]",
        f'model = "{model}"',
        f"aliases = {ALIASES.get(model, [])}",
        f"patterns = {PATTERNS[model][0] if model in PATTERNS else []}",
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
    for name in draw(st.lists(st.sampled_from(sorted(RARE_PRICES)), max_size=3, unique=True)):
        lines.append(f"{name} = {draw(st.sampled_from(RARE_PRICES[name]))}")
        lines += [draw(st.sampled_from(AUDIO_STEPS))] if name == "audio_hour" else []
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
        f"models/{name}",
        f"{name}-2026-03-05",
        f"{name}-20260305",
        f"{name}@20260305",
    )
    if name.startswith("ft:"):  # a fine-tuned model's id has rules of its own
        forms = (name.upper(), f"{entry.provider}/{name}")
    ids = {model.lower(): names for model, (_, names) in PATTERNS.items()}
    if entry.model in ids and _one_in(draw, 6):
        name = draw(st.sampled_from(ids[entry.model]))
        forms = (name.upper(), f"{entry.provider}/{name}", f"models/{name}", f"models/{entry.provider}/{name}")
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
    words = set(book.neutral_regions.get(entry.provider, set()))
    for names, _, _ in book.region_aliases.get(entry.provider, []):
        words |= names
    here = sorted(w for w in words if find_region(book, entry.provider, entry.model, w) == entry.region)
    plain = (entry.region, entry.region.upper()) if entry.region else (None, None)
    others = {other.region for other in book.entries if other.region}
    return _mostly(draw, draw(st.sampled_from((*plain, *here))), (*sorted(others | words), "mars"))


def _input(draw: st.DrawFn, entry: Entry, book: Book) -> Row:
    edges = {0, 1}
    for other in book.entries:
        if _name(other) == _name(entry) and other.above:
            edges |= {other.above - 1, other.above, other.above + 1}
    total = _total(draw, sorted(edges))
    row = _parts(draw, entry, total, INPUT_PARTS)
    written = row["cache_write_tokens"]
    long = None if written is None else _part(draw, written, is_likely="cache_write_long" in entry.rates)
    return {"input_tokens": total, **row, **_cached_media(draw, entry, row), "cache_write_long_tokens": long}


def _cached_media(draw: st.DrawFn, entry: Entry, row: Row) -> Row:
    """Some of the reads are media of a kind, on top of that kind's uncached ones; how many may not be known."""
    left = row["cache_read_tokens"] or 0
    media: Row = {}
    for kind in MEDIA:
        tokens = row[f"input_{kind}_tokens"]
        is_likely = bool(tokens) or f"cache_read_{kind}" in entry.rates
        if left and (is_likely or _one_in(draw, 30)):
            cached = draw(st.sampled_from((0, min(1, left), left)) | st.integers(0, left))
            left -= cached
            media[f"input_{kind}_tokens"] = (tokens or 0) + cached
            media[f"cache_read_{kind}_tokens"] = draw(st.sampled_from((cached, cached, None)))
        else:
            media[f"cache_read_{kind}_tokens"] = 0 if tokens == 0 else None
    return media


def _output(draw: st.DrawFn, entry: Entry) -> Row:
    total = _total(draw, [0, 1])
    return {"output_tokens": total, **_parts(draw, entry, total, OUTPUT_PARTS)}


def _counted(draw: st.DrawFn, entry: Entry) -> Row:
    """Counts of what is no token: likely where the entry has a rate, hardly ever where it has none."""
    row: Row = dict.fromkeys(COUNTED.values(), draw(st.sampled_from((None, 0))))
    for name, column in COUNTED.items():
        if name in entry.rates:
            edges = (None, 0, 1, 3, 6_000, 9_999, 10_000, 15_001, 3_600_000)
            row[column] = draw(st.sampled_from(edges) | st.integers(0, MOST.get(column, 100_000)))
    if _one_in(draw, 40):
        row[draw(st.sampled_from(sorted(COUNTED.values())))] = 1
    return row


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
