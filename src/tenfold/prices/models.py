"""A price file's entries as they are written, checked one by one; every error names file, entry and key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, Inexact
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from tenfold.errors import PriceFileError, near
from tenfold.money import EXACT, rate_pusd
from tenfold.prices.files import HOSTING
from tenfold.prices.meters import UNCACHED_INPUT, meters


def as_decimal(value: object) -> object:
    """Take a whole number for a decimal one; refuse what is no price at all.

    Args:
        value: What TOML holds.

    Returns:
        A Decimal, or the value as it is.

    Raises:
        ValueError: It is a truth value, not finite, or of no price's size.
    """
    if isinstance(value, bool | float):
        raise ValueError("write a number with at most 6 decimals, or a multiplier such as '0.1x'")  # noqa: TRY004
    number = Decimal(value) if isinstance(value, int) else value
    if isinstance(number, Decimal):
        _check_size(number, str(number))
    return number


def _check_size(number: Decimal, text: str) -> None:
    if not number.is_finite() or (number and not -30 <= number.adjusted() <= 30):
        raise ValueError(f'"{text}" is no number of a price\'s size')


def _instant(value: object) -> object:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("an instant needs a zone, such as 2026-07-30T00:00:00Z")
        try:
            return value.astimezone(UTC)
        except OverflowError as error:
            raise ValueError("an instant outside the calendar") from error
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise ValueError("write a date (00:00 UTC) or an instant with a zone")


Amount = Annotated[Decimal | str, BeforeValidator(as_decimal)]
Instant = Annotated[datetime, BeforeValidator(_instant)]


class Strict(BaseModel):
    """No unknown keys, no coercion."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True, str_strip_whitespace=True
    )


class PriceEntry(Strict):
    """One ``[[price]]`` table: rates of one model, tier, region, context band and time of week from one date on."""

    model: str = Field(min_length=1)
    aliases: list[Annotated[str, Field(min_length=1)]] = []
    patterns: list[Annotated[str, Field(pattern=r"[^*]")]] = []
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    service_tier: str = "standard"
    region: str = ""
    above_input_tokens: int = Field(default=0, ge=0, lt=2**62)
    weekdays: list[str] = []
    hours: list[str] = []
    zone: str = ""
    input: Amount | None = None
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    cache_write_long: Amount | None = None
    input_audio: Amount | None = None
    input_image: Amount | None = None
    input_video: Amount | None = None
    cache_read_audio: Amount | None = None
    cache_read_image: Amount | None = None
    cache_read_video: Amount | None = None
    output: Amount | None = None
    reasoning: Amount | None = None
    output_audio: Amount | None = None
    output_image: Amount | None = None
    output_video: Amount | None = None
    web_search: Amount | None = None
    web_search_preview: Amount | None = None
    file_search: Amount | None = None
    maps_search: Amount | None = None
    code_session: Amount | None = None
    request: Amount | None = None
    image: Amount | None = None
    page: Amount | None = None
    character: Amount | None = None
    audio_hour: Amount | None = None
    output_hour: Amount | None = None
    cache_storage: Amount | None = None
    min_audio_s: int = Field(default=0, ge=0, le=86_400)
    round_audio_s: int = Field(default=0, ge=0, le=86_400)
    source: str = Field(min_length=1)
    checked: date
    status: Literal["confirmed", "announced", "withdrawn"] = "confirmed"
    note: str = ""
    ambiguous: str = ""

    def rates(self) -> tuple[int | None, ...]:
        """Resolve the entry's prices to exact integers.

        Returns:
            pUSD per unit, one per meter in meter order; None where the entry has no price.

        Raises:
            ValueError: A price is finer than 1 pUSD a unit, or a multiplier has no input to multiply.
        """
        found = tuple(self._rate(meter.price, meter.per) for meter in meters())
        priced = any(rate is not None for rate in found)
        if self.ambiguous and priced:
            raise ValueError("ambiguous: an entry without an agreed price must not carry rates")
        if not self.ambiguous and (found[UNCACHED_INPUT] is None or self.output is None):
            raise ValueError('an entry needs input and output (0 where there is none), or says ambiguous = "why"')
        return found

    def _rate(self, key: str, per: int) -> int | None:
        written: Decimal | str | None = getattr(self, key)
        if written is None:
            return None
        try:
            return rate_pusd(self._usd(written), per)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error

    def _usd(self, written: Decimal | str) -> Decimal:
        if not isinstance(written, str):
            return written
        if not written.endswith("x"):
            return decimal(written)
        if self.input is None or isinstance(self.input, str):
            raise ValueError(f'"{written}" multiplies input, which must be a number in the same entry')
        try:
            return EXACT.multiply(decimal(written[:-1]), self.input)
        except Inexact as error:
            raise ValueError(f'"{written}" has more digits than a price can hold') from error


class RegionFactor(Strict):
    """One ``[[region_factor]]`` table: a region whose token rates are a multiple of the entry without a region."""

    region: str = Field(min_length=1)
    factor: str
    models: list[str] = Field(min_length=1)
    valid_from: Instant | None = None
    source: str = Field(min_length=1)
    checked: date
    note: str = ""


class RegionAlias(Strict):
    """One ``[[region_alias]]`` table: words of logs for a region that prices are written under."""

    words: list[str] = Field(min_length=1)
    region: str
    models: list[str] = []
    source: str = Field(min_length=1)
    checked: date
    note: str = ""


class PriceFile(Strict):
    """One provider's file."""

    provider: str = Field(min_length=1)
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    region_neutral: list[str] = []
    price: list[PriceEntry] = []
    region_factor: list[RegionFactor] = []
    region_alias: list[RegionAlias] = []


def decimal(text: str) -> Decimal:
    """Read a decimal number.

    Args:
        text: Plain digits.

    Returns:
        The number, exactly.

    Raises:
        ValueError: It is no finite number.
    """
    try:
        value = Decimal(text)
    except ArithmeticError as error:
        raise ValueError(f'"{text}" is no number') from error
    _check_size(value, text)
    return value


# Files of a price folder that hold no prices of a provider.
OTHER_FILES = (
    *("meters.toml", "caching.toml", "contract.toml", "currencies.toml"),
    *HOSTING,
)


def parse(name: str, content: bytes) -> PriceFile | None:
    """Read one price file.

    Args:
        name: File name, for errors.
        content: Its bytes.

    Returns:
        The file; None for the other files of a price folder (meters, caching rules, GPUs).

    Raises:
        PriceFileError: Something in it cannot be used; names file, entry, key and the near match.
    """
    raw = _toml(name, content)
    if "provider" not in raw:
        if name in OTHER_FILES:
            return None
        raise PriceFileError(f'{name}: no provider. A price file has provider = "..." at the top and [[price]] tables')
    return price_file(name, raw)


def price_file(name: str, raw: dict[str, Any]) -> PriceFile:
    """Check what a price file says, wherever it was written.

    Args:
        name: File name or other place, for errors.
        raw: Its keys, as TOML gives them.

    Returns:
        The file.

    Raises:
        PriceFileError: Something in it cannot be used; names file, entry, key and the near match.
    """
    tables = {"price": PriceEntry, "region_factor": RegionFactor, "region_alias": RegionAlias}
    return _checked(name, raw, PriceFile, tables)


Root = TypeVar("Root", bound=BaseModel)


def parse_as(name: str, content: bytes, kind: type[Root], tables: Mapping[str, type[BaseModel]]) -> Root:
    """Read another file of a price folder: a contract, or currencies.

    Args:
        name: File name, for errors.
        content: Its bytes.
        kind: Model of the whole file.
        tables: Model of the entries of each of its arrays of tables.

    Returns:
        The file.

    Raises:
        PriceFileError: Something in it cannot be used; names file, entry, key and the near match.
    """
    return _checked(name, _toml(name, content), kind, tables)


def _toml(name: str, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8-sig"), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ArithmeticError) as error:
        raise PriceFileError(f"{name}: not valid TOML: {error}") from error


def _checked(name: str, raw: dict[str, Any], kind: type[Root], tables: Mapping[str, type[BaseModel]]) -> Root:
    _known_keys(name, "", raw, kind)
    for table, row in tables.items():
        entries = raw.get(table, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", entries)):
            raise PriceFileError(f"{name}: {table} must be written as [[{table}]] tables")
        for number, entry in enumerate(cast("list[dict[str, Any]]", entries), 1):
            _known_keys(name, _place(table, number, entry), entry, row)
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise PriceFileError(f"{name}, {_explain(error, raw)}") from None


def place(number: int, entry: PriceEntry) -> str:
    """Name an entry for an error.

    Args:
        number: Its place in the file, from 1.
        entry: The entry.

    Returns:
        Text such as ``entry 3 (model "acme-large")``.
    """
    return _place("price", number, {"model": entry.model})


def _place(table: str, number: int, entry: Mapping[str, Any]) -> str:
    word = "entry" if table == "price" else table
    key = next((key for key in ("model", "region", "name", "currency", "provider") if key in entry), "model")
    return f'{word} {number} ({key} "{entry.get(key, "?")}")'


def _known_keys(name: str, where: str, raw: Mapping[str, Any], kind: type[BaseModel]) -> None:
    known = [field.alias or own for own, field in kind.model_fields.items()]
    for key in raw:
        if key not in known:
            at = f"{name}, {where}" if where else PurePath(name).name
            raise PriceFileError(f'{at}: unknown key "{key}".{near(key, known)}')


_TABLES = ("region_factor", "region_alias", "discount", "commitment", "rate", "rule", "pool", "gpu", "gpu_price")


def _explain(error: ValidationError, raw: Mapping[str, Any]) -> str:
    first, *others = error.errors()
    location = [part for part in first["loc"] if not isinstance(part, str) or "[" not in part]
    if first["type"] == "missing":
        # all that the same table lacks, at once
        at = first["loc"][:-1]
        missing = [
            str(one["loc"][-1]) for one in (first, *others) if one["type"] == "missing" and one["loc"][:-1] == at
        ]
        location, message = (
            location[:-1],
            f"{' and '.join(missing) if len(missing) < 3 else ', '.join(missing)} missing",
        )
    else:
        message = _message(first)
    if len(location) >= 2 and isinstance(location[1], int) and location[0] in ("price", *_TABLES):
        table, number = str(location[0]), location[1]
        rest = str(location[2]) if len(location) > 2 else ""
        return f"{_place(table, number + 1, raw[table][number])}: {rest}: {message}".replace(": : ", ": ")
    return f"{'.'.join(str(part) for part in location)}: {message}".removeprefix(": ")


# What a kind of error asks for, with the words of its context.
_ASKED = {
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "string_type": 'write text in quotes, such as "..."',
    "bool_type": "write true or false",
    "date_type": "write a date such as 2026-07-30",
    "list_type": "write a list, such as [...]",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must not be empty",
    "literal_error": "must be one of {expected}",
}


def _message(error: ErrorDetails) -> str:
    words = _ASKED.get(error["type"])
    if words is None:
        return error["msg"].removeprefix("Value error, ")
    written = error["input"]
    return words.format(**error.get("ctx", {})) + (
        f", not {written!r}" if isinstance(written, str | int | float) else ""
    )
