"""Amounts as people write them: decimal dots and commas, minus signs and brackets, currencies by sign, code or word.

Which of ``1,234`` and ``1.234`` is a thousand is proven by a column's other cells, else by the file's other columns;
where nothing proves it the file is refused.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from tenfold.errors import LogFormatError
from tenfold.logs.buckets.base import BucketError, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from decimal import Decimal

_DOLLAR = "$"
# Signs and words of each code, in lower case and in the singular; a dollar that does not say whose is `$`.
_CURRENCIES: dict[str, tuple[str, ...]] = {
    _DOLLAR: ("$", "dollar"),
    "USD": ("us$", "usd$", "us dollar", "u.s. dollar", "american dollar", "united states dollar"),
    "EUR": ("€", "euro"),
    "GBP": ("£", "pound sterling", "british pound", "pound", "sterling"),
    "JPY": ("¥", "japanese yen", "yen"),
    "CNY": ("cn¥", "yuan", "renminbi", "rmb"),
    "INR": ("₹", "indian rupee", "rupee"),
    "CHF": ("swiss franc",),
    "CAD": ("c$", "ca$", "canadian dollar"),
    "AUD": ("a$", "au$", "australian dollar"),
    "NZD": ("nz$", "new zealand dollar"),
    "SGD": ("s$", "singapore dollar"),
    "HKD": ("hk$", "hong kong dollar"),
    "MXN": ("mx$", "mexican peso"),
    "BRL": ("r$", "brazilian real"),
    "KRW": ("₩", "korean won"),
    "ILS": ("₪", "shekel"),
    "TRY": ("₺", "turkish lira"),
    "PLN": ("zł", "zloty", "złoty"),
    **dict.fromkeys(("SEK", "NOK", "DKK", "CZK", "HUF", "ZAR", "AED", "THB", "TWD"), ()),
}
_SPELLED = {name: code for code, names in _CURRENCIES.items() for name in (code.lower(), *names)}
# Currencies that a bare `$` may be the sign of, where something else names them.
_DOLLARS = {"USD", "CAD", "AUD", "SGD", "HKD", "NZD", "MXN", "TWD"}
_NAME = re.compile(
    "|".join(
        rf"(?<![a-z]){re.escape(name)}s?(?![a-z])" if name[-1].isalpha() else rf"(?<![a-z]){re.escape(name)}"
        for name in sorted(_SPELLED, key=len, reverse=True)
    )
    + r"|\$",
    re.IGNORECASE,
)
_BARE = re.compile(r"[-\d.,eE]+")
_MINUS = "-\u2212"
_WRITTEN = re.compile(
    rf"(?P<lead>[{_MINUS}+]?)\s*(?P<open>\(?)\s*(?P<inner>[{_MINUS}+]?)\s*"
    rf"(?P<digits>[\d.,]*\d(e[-+]?\d+)?)\s*(?P<close>\)?)\s*(?P<trail>[{_MINUS}+]?)",
    re.IGNORECASE,
)
_SPACED = re.compile(r"(?<=\d)[\s'\u2019](?=\d{3}(?!\d))")
_OTHER = {".": ",", ",": "."}
_NUMBERS = {
    sign: re.compile(rf"(\d{{1,3}}({re.escape(other)}\d{{3}})+|\d+)?({re.escape(sign)}\d+)?(e[-+]?\d+)?", re.IGNORECASE)
    for sign, other in _OTHER.items()
}
_GROUPED = {sign: re.compile(rf"\d{{1,3}}({re.escape(sign)}\d{{3}})+") for sign in _OTHER}


@lru_cache(maxsize=4096)
def spelled(text: str) -> tuple[frozenset[str], str]:
    """Take the currencies out of a text.

    Args:
        text: A column's name, a currency, or an amount with one.

    Returns:
        ISO codes, ``$`` for a dollar that does not say whose, a sign that is not known as itself; and the other text.
    """
    if _BARE.fullmatch(text):
        return frozenset(), text
    found: set[str] = set()

    def take(name: re.Match[str]) -> str:
        said = name[0].lower()
        found.add(_SPELLED.get(said) or _SPELLED[said.removesuffix("s")])
        return " "

    rest = _NAME.sub(take, text)
    strange = {sign for sign in rest if unicodedata.category(sign) == "Sc"}
    return frozenset(found | strange), "".join(" " if sign in strange else sign for sign in rest).strip()


def currency(cell: frozenset[str], column: str, header: frozenset[str]) -> str:
    """Give a row's currency.

    Args:
        cell: What the amount says.
        column: What the currency column says; empty without one.
        header: What the amount column's name says.

    Returns:
        An ISO code, or the source's own word; USD where nothing or only a ``$`` is said.

    Raises:
        BucketError: They contradict each other.
    """
    said = (cell, (spelled(column)[0] or frozenset({column.upper()})) if column else frozenset[str](), header)
    names = frozenset[str]().union(*said)
    codes = names - {_DOLLAR}
    if len(codes) > 1 or (_DOLLAR in names and not codes <= _DOLLARS):
        places = zip(("the amount", "the currency column", "the amount's header"), said, strict=True)
        words = ", ".join(f"{place} {'/'.join(sorted(one))}" for place, one in places if one)
        raise BucketError(f"contradictory currencies: {words[:120]}; leave the true one", "currency")
    return next(iter(codes), "USD")


def amount(text: str, sign: str, name: str) -> Decimal:
    """Read a number without its currency: ``1,234.56``, ``-5``, ``12.34-``, ``(12.30)``.

    Args:
        text: The number.
        sign: Its decimal sign, a dot or a comma.
        name: Column.

    Returns:
        The number; negative with a minus on either side or in brackets.

    Raises:
        BucketError: It is none.
    """
    found = _WRITTEN.fullmatch(_SPACED.sub("", text.strip()))
    if found is None or _NUMBERS[sign].fullmatch(found["digits"]) is None:
        raise BucketError(f"no amount: {text[:40]!r}; write 1234{sign}56 or 1{_OTHER[sign]}234{sign}56", name)
    if bool(found["open"]) != bool(found["close"]):
        raise BucketError(f"half a bracket: {text[:40]!r}; write (12.34) or -12.34", name)
    marks = found["lead"] + found["inner"] + found["trail"]
    if len(marks) + bool(found["open"]) > 1:
        raise BucketError(f"more than one sign: {text[:40]!r}; write -12.34", name)
    value = number(found["digits"].replace(_OTHER[sign], "").replace(",", "."), name)
    if value is None:
        raise BucketError("no amount", name)
    return -value if found["open"] or marks in tuple(_MINUS) else value


def decimal_signs(columns: Mapping[str, Iterable[tuple[int, str]]], *, leans_to_commas: bool) -> dict[str, str]:
    """Decide the decimal sign of every column from its cells.

    A number with both signs proves the last of them, a sign that groups by threes more than once the other one, a
    single sign that cannot group by threes itself. A number with both outweighs those with one. A column that proves
    nothing is written as the file's others are. Without any proof a single dot is decimal, but not in a file between
    semicolons, as those that write decimal commas use.

    Args:
        columns: Name of each column to the line and text of its cells.
        leans_to_commas: The file is between semicolons.

    Returns:
        Name of each column to a dot or a comma.

    Raises:
        LogFormatError: Nothing proves it, or cells contradict each other.
    """
    made: dict[str, str] = {}
    unproven: dict[str, dict[str, tuple[int, str]]] = {}
    for name, cells in columns.items():
        proofs: tuple[dict[str, tuple[int, str]], ...] = ({}, {}, {})  # both signs, one sign, no proof
        for line, cell in cells:
            sign, rank = _proof(cell)
            if sign:
                proofs[rank].setdefault(sign, (line, cell))
        proven = proofs[0] or proofs[1]
        if len(proven) > 1:
            ways = " and ".join(f'"{cell}" in line {line}' for line, cell in proven.values())
            raise LogFormatError(f"{name}: {ways} have different decimal signs. Write all of them with a decimal dot")
        if proven:
            made[name] = next(iter(proven))
        unproven[name] = proofs[2]
    others = set(made.values())
    for name, held in unproven.items():
        if name in made:
            continue
        if len(others) == 1:
            made[name] = next(iter(others))
        elif held.keys() <= ({"."} if not leans_to_commas else set[str]()):
            made[name] = "."
        else:
            line, cell = held.get(",") or held["."]
            plain = cell.replace(",", "").replace(".", "")
            raise LogFormatError(
                f'{name}: "{cell}" in line {line} may be {plain} or {cell.replace(",", ".")}, and no cell of the file '
                "proves which. Write the amounts with a decimal dot and two decimals, such as 1234.00"
            )
    return made


def _proof(cell: str) -> tuple[str, int]:
    """Say which decimal sign a cell shows, and how well: 0 by both signs, 1 by one, 2 not at all; empty for none."""
    if "." not in cell and "," not in cell:
        return "", 2
    found = _WRITTEN.fullmatch(_SPACED.sub("", spelled(cell)[1]))
    if found is None:
        return "", 2
    digits, _, exponent = found["digits"].lower().partition("e")
    signs = [sign for sign in digits if sign in _OTHER]
    last = signs[-1] if signs else "."
    before, _, after = digits.rpartition(last)
    if len(set(signs)) == 2:
        return (last, 0) if _GROUPED[_OTHER[last]].fullmatch(before) else ("", 2)
    if len(signs) > 1:
        return (_OTHER[last], 1) if _GROUPED[last].fullmatch(digits) else ("", 2)
    if not signs:
        return "", 2
    groups = len(after) == 3 and 1 <= len(before) <= 3 and before[0] != "0" and not exponent
    return last, 2 if groups else 1
