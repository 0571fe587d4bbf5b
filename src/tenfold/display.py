"""Numbers for people: shares, ratios, counts and times, rounded here and nowhere earlier."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tenfold.money import PUSD_PER_USD, shown

NONE = "(none)"
# How a name without a letter is shown.
NAMELESS = "(empty)"
# Controls but line breaks and tabs; marks of direction; zero widths and blanks (joiners of emoji stay); tags; what XML
# cannot hold: lone surrogates and two codes that are no characters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
# How a line begins that names what a log does not allow.
UNMEASURED = "not measurable, with what would tell"
# The line of what no team owns: a dimension that is to be whole.
UNALLOCATED = "unallocated"
# What has no time, cut by periods.
UNDATED = "no time"
# Names that tenfold gives: a name of the log that reads like one stands in quotes.
_OWN_NAMES = re.compile(
    r'"*(unallocated|no time|\((none|empty|idle)\)|(the )?(total|whole|all)|([\d,]+ )?others?(, .*)?|–|\*)"*',
    re.IGNORECASE,
)
# Every meter in one column for people: the column's key, its heading, its meters. One grouping for all tables.
METER_GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("uncached", "uncached in", ("uncached_input",)),
    ("read", "cache read", ("cache_read", "cache_read_audio", "cache_read_image", "cache_read_video")),
    ("write", "cache write", ("cache_write", "cache_write_long")),
    (
        "media",
        "media",
        (
            *("input_audio", "input_image", "input_video", "output_audio", "output_image", "output_video"),
            *("image", "page", "character", "audio_time", "output_time"),
        ),
    ),
    ("output", "output", ("output", "reasoning")),
    ("storage", "cache storage", ("cache_storage",)),
    (
        "calls",
        "calls",
        ("web_search", "web_search_preview", "file_search", "maps_search", "code_session", "request"),
    ),
)
# How a cell begins that a spreadsheet may take for a formula (OWASP, "CSV Injection"), the full-width signs too; and
# how one begins that was made harmless.
FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_HARMLESS = re.compile(rf"'{FORMULA.pattern}")
_ABSENT = {"team": UNALLOCATED, **dict.fromkeys(("day", "week", "month", "quarter", "year"), UNDATED)}
_STATUS_WORDS = {
    "usage_missing": "no usage logged",
    "usage_partial": "usage incomplete",
    "unpriced_model": "model not in the price book",
    "unpriced_meter": "a meter has no price",
    "ambiguous": "several prices fit",
    "known_zero": "free",
}


def percent(share: Fraction | float | None, decimals: int = 0) -> str:
    """Write a share as percent; what is not all or nothing never looks like it.

    Args:
        share: The share, 1 being all; None where unknown.
        decimals: Decimals to show.

    Returns:
        Text such as ``"44 %"``, ``"<1 %"``, ``">99.99 %"`` or ``"unknown"``.
    """
    if share is None:
        return "unknown"
    exact = Fraction(share)
    step = Fraction(1, 100 * 10**decimals)
    if 0 < exact < step / 2:
        return f"<{_fixed(step * 100, decimals)} %"
    if 1 - step / 2 < exact < 1:
        return f">{_fixed((1 - step) * 100, decimals)} %"
    return f"{_fixed(exact * 100, decimals)} %"


def ratio(value: Fraction | None) -> str:
    """Write a ratio to one.

    Args:
        value: The ratio; None where it does not exist.

    Returns:
        Text such as ``"14.2:1"``, or ``"unknown"``.
    """
    return "unknown" if value is None else f"{_fixed(value, 1)}:1"


def counted(number: int, noun: str) -> str:
    """Write a count with its noun.

    Args:
        number: How many.
        noun: In the singular.

    Returns:
        Text such as ``"1 request"`` or ``"1,012 requests"``.
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def minute(instant: datetime, zone: str = "UTC") -> str:
    """Write an instant to the minute, with its zone.

    Args:
        instant: An aware instant.
        zone: IANA zone to show it in.

    Returns:
        Text such as ``"2026-09-08 14:05 UTC"``.
    """
    return f"{instant.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} {zone}"


def number(value: Fraction | float, decimals: int) -> str:
    """Write a number with thousands separators, rounded half even.

    Args:
        value: The number.
        decimals: Decimals to show.

    Returns:
        Text such as ``"1,234.5"``.
    """
    return _fixed(Fraction(value), decimals)


def _fixed(value: Fraction, decimals: int) -> str:
    with localcontext(prec=60):
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        return f"{exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN):,}"


class Unit(NamedTuple):
    """A unit to show amounts in that are compared with each other.

    Args:
        name: Such as ``s``.
        scale: What an amount is multiplied by.
        decimals: Decimals that tell amounts apart.
    """

    name: str
    scale: float
    decimals: int

    def text(self, amount: float) -> str:
        """Write an amount in this unit, without its name; what is below one has two decimals of a time.

        Args:
            amount: The amount, in the unit it is kept in.

        Returns:
            Text such as ``"1.91"``.
        """
        scaled = amount * self.scale
        return number(scaled, max(self.decimals, 2) if self.decimals and 0 < abs(scaled) < 1 else self.decimals)


def unit_of_ms(largest: float) -> Unit:
    """Choose the unit of some times by the longest: three figures of it are shown.

    Args:
        largest: The longest, in milliseconds.

    Returns:
        Seconds from one second on, else milliseconds.
    """
    if largest >= 1000:
        return Unit("s", 1e-3, 2 if largest < 10_000 else 1 if largest < 100_000 else 0)
    return Unit("ms", 1.0, 0 if largest >= 100 else 1 if largest >= 10 else 2)


def absent(dimension: str) -> str:
    """Name what a dimension does not name.

    Args:
        dimension: Column that is grouped by.

    Returns:
        ``"unallocated"`` for the team, ``"no time"`` for a period, else ``"(none)"``.
    """
    return _ABSENT.get(dimension, NONE)


def name_of(dimension: str, value: object) -> str:
    """Name a value of a dimension for people, so that no name of a log can be taken for what has none.

    Args:
        dimension: Column that is grouped by.
        value: Its value; None where the log says nothing.

    Returns:
        The value; in double quotes where it reads like a word that tables use themselves, such as ``unallocated`` or
        ``total``. What is absent is named as ``absent`` does.
    """
    if value is None:
        return absent(dimension)
    text = str(value)
    return f'"{text}"' if _OWN_NAMES.fullmatch(text.strip()) else text or NAMELESS


def sentence(text: str) -> str:
    """Begin a line with a capital letter.

    Args:
        text: The line.

    Returns:
        The same line.
    """
    return text[:1].upper() + text[1:]


def nothing_priced(requests: int, unpriced: int) -> bool:
    """Tell whether a group has no cost rather than none: it has requests, and not one has a price.

    Args:
        requests: Its billable requests.
        unpriced: Those of them without a price.

    Returns:
        True where a cost of 0 would be false.
    """
    return requests > 0 and requests == unpriced


def status_words(status: str) -> str:
    """Say a price status in words.

    Args:
        status: Such as ``usage_missing``.

    Returns:
        Text such as ``"no usage logged"``.
    """
    return _STATUS_WORDS.get(status, status.replace("_", " "))


def saved_or_lost(pusd: int) -> str:
    """Say what something did to the bill, with the verb that fits the sign.

    Args:
        pusd: What it saved (positive) or lost (negative), in pUSD.

    Returns:
        Text such as ``"saved $1.20"``, ``"lost $0.30"`` or ``"saved nothing"``.
    """
    if not pusd:
        return "saved nothing"
    return f"{'saved' if pusd > 0 else 'lost'} {small_dollars(abs(pusd))}"


def dollars(usd: str | None, decimals: int = 2) -> str:
    """Write an amount that a JSON document holds as a decimal string.

    Args:
        usd: Amount in USD, such as ``"77.43306"``; None where unknown.
        decimals: Decimals to show.

    Returns:
        Text such as ``"$77.43"``; a dash for None.
    """
    if usd is None:
        return "–"
    text = _fixed(Fraction(usd), decimals)
    return f"-${text[1:]}" if text.startswith("-") else f"${text}"


def small_dollars(pusd: int) -> str:
    """Write an amount to the cent; one that is above zero never reads as zero.

    Args:
        pusd: Amount in pUSD.

    Returns:
        Text such as ``"$1,234.57"``, or ``"<$0.01"``.
    """
    return "<$0.01" if 0 < pusd < PUSD_PER_USD // 200 else shown(pusd)


# Long names are cut in the middle where people read; a workbook keeps them whole.
_LONGEST = 400


def visible(text: str) -> str:
    """Make characters seen that would hide or turn text: controls, direction marks, zero widths, lone surrogates.

    Args:
        text: Text that may come from a log.

    Returns:
        The text with each of them as its code, such as ``⟨U+202E⟩``; nothing else is changed.
    """
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Cut a text of a log in the middle where it is longer than a table can bear.

    Args:
        text: The text.
        longest: Characters to keep.

    Returns:
        The text, or its beginning and end with what was left out counted between.
    """
    if len(text) <= longest:
        return text
    kept = longest // 2
    return f"{text[:kept]}… ({len(text) - 2 * kept} more) …{text[-kept:]}"


def spreadsheet_safe(text: str) -> str:
    """Keep a spreadsheet from taking a cell's text for a formula: what begins like one gets an apostrophe before it.

    Args:
        text: Any text, such as a name that a log says.

    Returns:
        The text; ``spreadsheet_text`` gives it back unchanged.
    """
    return f"'{text}" if FORMULA.match(text) else text


def spreadsheet_text(cell: str) -> str:
    """Take the apostrophe off again that ``spreadsheet_safe`` put.

    Args:
        cell: A cell of a table that was written with it.

    Returns:
        The text as it was.
    """
    return cell[1:] if _HARMLESS.match(cell) else cell
