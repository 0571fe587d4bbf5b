"""FOCUS export: the ledger as the standard's cost and usage rows, one SKU a token meter, every amount exact.

Source: FinOps Open Cost and Usage Specification 1.2 and 1.4, cost and usage dataset, and the drafts' AI billing
examples for how tokens are written. What has no price is in no row: it goes to a file beside with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import polars as pl

from tenfold.errors import AssumptionError, NotEvaluable, near
from tenfold.export import focus_flat, writing
from tenfold.export.focus_lines import Grain, Lines, lay, reasons
from tenfold.export.focus_names import SKUS, seller
from tenfold.export.focus_spec import columns_of
from tenfold.ledger import Ledger, Window
from tenfold.money import usd_text
from tenfold.prices.book import NO_LIMIT, Entry
from tenfold.prices.meters import meters
from tenfold.store import steps
from tenfold.store.database import quoted
from tenfold.store.engines.duckdb import reading

Written: TypeAlias = Literal["1.2", "1.4"]
Source: TypeAlias = Literal["estimated", "reconciled"]
UNKNOWN_ACCOUNT = "unknown"
_PUSD = "cast('0.000000000001' as decimal(13, 12))"
_COSTS = ("ListCost", "ContractedCost", "EffectiveCost", "BilledCost")
_TEXTS = ("seller", "service", "model", "sku", "sku_price", "sku_meter", "unit", "pricing_unit", "details", "described")
_SKU_SCHEMA = {
    "price_key": pl.Int32,
    "own_entry": pl.Int32,
    "meter": pl.String,
    "per": pl.Int64,
    **dict.fromkeys((*_TEXTS, "band", "price_entry"), pl.String),
}


@dataclass(frozen=True, slots=True)
class FocusExport:
    """What a FOCUS export wrote.

    Args:
        path: The file.
        version: Version of the standard.
        rows: Its rows.
        requests: Requests that they are of.
        costs: ListCost, ContractedCost, EffectiveCost and BilledCost over all rows, in pUSD.
        without_list_pusd: Of ListCost, what stands in for a list price that does not exist.
        unpriced_requests: Billed requests that have no price and so are in no row.
        unpriced_path: The file that holds them by reason; None where there are none.
        unpriced: Reasons with how many requests each holds back, most first.
        card_version: The price book.
        log_hash: The log.
    """

    path: Path
    version: str
    rows: int
    requests: int
    costs: dict[str, int]
    without_list_pusd: int
    unpriced_requests: int
    unpriced_path: Path | None
    unpriced: tuple[tuple[str, int], ...]
    card_version: str
    log_hash: str

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold export focus --json``.

        Returns:
            ``out``, ``version``, ``rows``, ``requests``, the four costs in USD, and what is left out.
        """
        names = {
            "ListCost": "list",
            "ContractedCost": "contracted",
            "EffectiveCost": "effective",
            "BilledCost": "billed",
        }
        return {
            "out": str(self.path),
            "version": self.version,
            "rows": self.rows,
            "requests": self.requests,
            **{f"{names[name]}_usd": usd_text(self.costs[name]) for name in _COSTS},
            "without_list_price_usd": usd_text(self.without_list_pusd),
            "unpriced_requests": self.unpriced_requests,
            "unpriced_out": None if self.unpriced_path is None else str(self.unpriced_path),
            "unpriced": [{"reason": reason, "requests": count} for reason, count in self.unpriced],
            "card_version": self.card_version,
            "log_hash": self.log_hash,
        }

    def __repr__(self) -> str:
        return f"<FocusExport {self.path}: {self.rows:,} rows, billed {usd_text(self.costs['BilledCost'])} USD>"


def export_focus(
    ledger: Ledger,
    out: str | Path,
    *,
    version: Written = "1.2",
    grain: Grain = "day",
    cost_source: Source = "estimated",
    account: str = UNKNOWN_ACCOUNT,
) -> FocusExport:
    """Write a ledger as a FOCUS file.

    A row is one charge period (UTC day or hour, shorter where a price changes within it), owner, model, tier, region,
    context band, set of tags and meter. List and contracted unit price times PricingQuantity are exactly the costs;
    meters by time are rounded half-even to 1e-12 USD a request. Capacity by the hour is a purchase of each day, carried
    in EffectiveCost by the requests that it covers; idle GPU time of a fleet is rows of its own.

    Args:
        ledger: The priced log. Days are UTC days, whatever its zone.
        out: The file; ``.csv``, ``.csv.gz`` or ``.parquet``. In CSV, a text that a spreadsheet would take for a formula
            gets an apostrophe before it, which ``tenfold load`` takes off again.
        version: Version of the standard.
        grain: Length of a charge period.
        cost_source: Whether BilledCost was held against an invoice (``reconciled``) or is the ledger's own estimate.
        account: BillingAccountId where the log names no organisation.

    Returns:
        What was written, and what was left out.

    Raises:
        AssumptionError: An option is unknown, the file's name says no format, or the ledger is a what-if.
        NotEvaluable: Nothing in the ledger's window has a price.
        OSError: The file cannot be written.
    """
    path = Path(out)
    _check_options(ledger, path, version=version, grain=grain, cost_source=cost_source)
    if ledger.window.zone != "UTC":
        ledger = ledger.within(Window(ledger.window.since, ledger.window.until))
    log_hash = ledger.log.log_hash
    capacity, spent = focus_flat.commitments(ledger)
    with reading(ledger.log.store) as engine:
        edges = [edge for one in capacity for edge in (one.since, one.until)]
        lines = lay(engine, ledger, grain=grain, edges=edges)
        _skus(lines)
        idle = focus_flat.carry(lines, capacity)
        _covered(lines)
        texts = {
            "x_CostSource": cost_source,
            "x_CardVersion": ledger.book.version,
            "x_LogHash": log_hash,
        }
        columns = _columns(version, lines, texts, account)
        listed = ",\n  ".join(f'{text} as "{name}"' for name, text in columns.items())
        steps.run(engine, "focus_rows", columns=listed)
        extras = [*focus_flat.capacity_rows(capacity, idle), *focus_flat.spent_rows(spent)]
        extras += focus_flat.charge_rows(ledger)
        _extras(lines, extras, columns, texts, account)
        names = writing.listed(columns)
        engine.step(
            "focus_all", f"select {names}, place from focus_rows union all select {names}, place from focus_extras"
        )
        found = _sums(lines)
        if not found["rows"]:
            raise NotEvaluable("nothing in this window has a price, so there is nothing to export")
        reasons(lines)
        writing.copy(engine.connection, "focus_all", path, order="place", drop="place")
        beside, why = _unpriced(lines, path)
    costs = {name: int(found[name]) for name in _COSTS}
    return FocusExport(
        path, version, int(found["rows"]), int(found["requests"]), costs, int(found["without_list"]),
        sum(count for _, count in why), beside, why, ledger.book.version, log_hash,
    )  # fmt: skip


def _check_options(ledger: Ledger, path: Path, **options: str) -> None:
    for (name, value), known in zip(options.items(), (Written, Grain, Source), strict=True):
        if value not in get_args(known):
            raise AssumptionError(
                f'{name} "{value}": one of {", ".join(get_args(known))}.{near(value, get_args(known))}'
            )
    if writing.kind_of(path) == "xlsx":
        raise AssumptionError(f"{path}: a FOCUS file is CSV or Parquet: name it .csv, .csv.gz or .parquet")
    if ledger.price_at is not None:
        raise AssumptionError("a FOCUS file holds what each day cost: leave out --price-at (price_at)")


def _skus(lines: Lines) -> None:
    """Put the standard's words for each price key, entry and meter beside the lines."""
    found = lines.engine.fetch("select distinct price_key, own_entry, meter from focus_lines order by all nulls last")
    keys = {key: parts for key, *parts in lines.session.keys}
    known = {meter.name: meter for meter in meters()}
    rows: list[tuple[object, ...]] = []
    for price_key, entry_id, meter in found.rows():
        entry = lines.session.card.entries[int(entry_id)]
        provider, served, tier, _ = keys[price_key]
        who, sku = seller(entry.provider or provider), SKUS[meter]
        price = [f"{entry.model}-{sku.suffix}", "ondemand" if tier == "standard" else tier, entry.region]
        price.append(f"above-{entry.above}" if entry.above > 0 else "")
        described = [sku.meter, f"for {served}", "" if tier == "standard" else f"({tier})"]
        rows.append((
            price_key, entry_id, meter, known[meter].per, who.name, who.service, served, price[0],
            "-".join(part for part in price if part), sku.meter, sku.unit, sku.pricing_unit,
            _details(entry, who.developer, tier, meter), " ".join(part for part in described if part), band(entry),
            f"{entry.file}#{entry.number}",
        ))  # fmt: skip
    lines.engine.register("focus_skus", pl.DataFrame(rows, schema=_SKU_SCHEMA, orient="row"))


def _details(entry: Entry, developer: str, tier: str, meter: str) -> str:
    """Write SkuPriceDetails; its keys begin with x_ as long as FOCUS has none for models."""
    sku = SKUS[meter]
    has_cache = entry.rates[list(SKUS).index("cache_read")] is not None
    found = {
        "x_ModelId": entry.model,
        "x_ModelDeveloper": developer,
        "x_TokenDirection": sku.direction,
        "x_TokenCacheAction": sku.cache if has_cache or sku.cache != "Uncached" else "",
        "x_ServiceTier": tier,
        "x_ContextBand": band(entry) or "",
    }
    return json.dumps({key: value for key, value in found.items() if value}, ensure_ascii=False)


def band(entry: Entry) -> str | None:
    """Write the context band of a price.

    Args:
        entry: The price entry.

    Returns:
        Text such as ``0-200000`` or ``>200000`` (of total input tokens); None where the price has no bands.
    """
    if entry.above <= 0 and entry.up_to >= NO_LIMIT:
        return None
    return f">{entry.above}" if entry.up_to >= NO_LIMIT else f"{max(entry.above, 0)}-{entry.up_to}"


def _covered(lines: Lines) -> None:
    """Put beside each day which share of its billed requests has a price, in percent: 100 only where all have."""
    days = lines.engine.fetch(steps.filled("focus_covered", own="focus_own"))
    rows = [(day, Decimal(10**6 * priced // requests).scaleb(-4)) for day, requests, priced in days.rows()]
    schema = {"day": pl.Date, "coverage": pl.Decimal(9, 4)}
    lines.engine.register("focus_days", pl.DataFrame(rows, schema=schema, orient="row"))


def _usd(pusd: str) -> str:
    return f"cast(cast({pusd} as decimal(25, 0)) * {_PUSD} as decimal(38, 12))"


def _price(rate: str) -> str:
    return _usd(f"cast({rate} as decimal(19, 0)) * cast(s.per as decimal(19, 0))")


# Maps are joined, sorted and written where only this engine can; an owner's tag gives way to a tag of that name.
_OWNED = """map_from_entries(list_filter([
    {'k': 'environment', 'v': environment}, {'k': 'feature', 'v': feature}, {'k': 'team', 'v': team}],
    lambda pair: pair.v is not null))"""
_TAGGED = """case when cardinality({0}) > 0 then
    cast(to_json(map_from_entries(list_sort(map_entries({0})))) as varchar) end"""
# Of a request; of a line the tags are a text already.
TAGS = _TAGGED.format(f"map_concat({_OWNED}, coalesce(tags, map{{}}))")
_LINE_TAGS = "coalesce(cast(cast(tags as json) as map(varchar, varchar)), map{})"


def _columns(version: Written, lines: Lines, texts: dict[str, str], account: str) -> dict[str, str]:
    """List the columns with the SQL that each is made by, in the standard's order, then our own."""
    utc = "timezone('UTC', {})".format
    made = {
        "BilledCost": _usd("l.own_pusd"),
        "BillingAccountId": f"coalesce(l.org, {quoted(account)})",
        "BillingAccountName": f"coalesce(l.org, {quoted(account)})",
        "BillingAccountType": "'Organization'",
        "BillingCurrency": "'USD'",
        "BillingPeriodEnd": utc("cast(date_trunc('month', l.period_start) as timestamp) + interval 1 month"),
        "BillingPeriodStart": utc("cast(date_trunc('month', l.period_start) as timestamp)"),
        "ChargeCategory": "'Usage'",
        "ChargeDescription": "s.described",
        "ChargeFrequency": "'Usage-Based'",
        "ChargePeriodEnd": utc("l.period_end"),
        "ChargePeriodStart": utc("l.period_start"),
        "CommitmentDiscountCategory": "case when c.line is not null then 'Spend' end",
        "CommitmentDiscountId": "c.commitment",
        "CommitmentDiscountName": "c.commitment",
        "CommitmentDiscountQuantity": _usd("c.share_pusd"),
        "CommitmentDiscountStatus": "case when c.line is not null then 'Used' end",
        "CommitmentDiscountType": "case when c.line is not null then 'Capacity' end",
        "CommitmentDiscountUnit": "case when c.line is not null then 'USD' end",
        "ConsumedQuantity": _usd("l.consumed_e12"),
        "ConsumedUnit": "s.unit",
        "ContractedCost": _usd("l.own_pusd"),
        "ContractedUnitPrice": _price("l.own_rate"),
        "EffectiveCost": _usd("l.own_pusd + coalesce(c.share_pusd, 0)"),
        "HostProviderName": "s.seller",
        "InvoiceIssuerName": "s.seller",
        "ListCost": _usd("l.list_pusd"),
        "ListUnitPrice": _price("l.list_rate"),
        "PricingCategory": "case when c.line is null then 'Standard' else 'Committed' end",
        "PricingCurrency": "'USD'",
        "PricingCurrencyContractedUnitPrice": _price("l.own_rate"),
        "PricingCurrencyEffectiveCost": _usd("l.own_pusd + coalesce(c.share_pusd, 0)"),
        "PricingCurrencyListUnitPrice": _price("l.list_rate"),
        "PricingQuantity": _usd("l.priced_e12"),
        "PricingUnit": "s.pricing_unit",
        "ProviderName": "s.seller",
        "PublisherName": "s.seller",
        "RegionId": "nullif(k.region, '')",
        "RegionName": "nullif(k.region, '')",
        "ResourceId": "nullif(s.model, '')",
        "ResourceType": "case when s.model <> '' then 'Model' end",
        "ServiceCategory": "'AI and Machine Learning'",
        "ServiceName": "s.service",
        "ServiceProviderName": "s.seller",
        "ServiceSubcategory": "'Generative AI'",
        "SkuId": "s.sku",
        "SkuMeter": "s.sku_meter",
        "SkuPriceDetails": "s.details",
        "SkuPriceId": "s.sku_price",
        "SubAccountId": "coalesce(l.project, l.team)",
        "SubAccountName": "coalesce(l.project, l.team)",
        "SubAccountType": "case when l.project is not null then 'Project' when l.team is not null then 'Team' end",
        "Tags": _TAGGED.format(f"map_concat({_OWNED}, {_LINE_TAGS})" if "tags" in lines.dimensions else _OWNED),
    }
    none = "cast(null as varchar)"
    left_out = ("Allocated", "Availability", "CapacityReservation", "CommitmentProgram", "ContractApplied")
    standard = [one.name for one in columns_of(version) if not one.name.startswith((*left_out, "InvoiceDetail"))]
    own = {
        "x_Provider": "nullif(k.provider, '')",
        "x_Meter": "l.meter",
        "x_ModelId": "nullif(s.model, '')",
        "x_Team": "l.team",
        "x_Feature": "l.feature",
        "x_Environment": "l.environment",
        "x_ServiceTier": "k.service_tier",
        "x_ContextBand": "s.band",
        "x_RequestCount": "l.requests",
        "x_ReasoningTokens": "l.reasoning_tokens",
        "x_CoveragePct": "d.coverage",
        "x_ListPrice": "case when l.has_list then 'list' else 'none' end",
        "x_PriceEntry": "s.price_entry",
        **{name: quoted(value) for name, value in texts.items()},
    }
    return {**{name: made.get(name, none) for name in standard}, **own}


def _extras(
    lines: Lines, rows: Sequence[dict[str, object]], columns: dict[str, str], texts: dict[str, str], account: str
) -> None:
    """Put the rows beside usage into a table of the same columns."""
    kinds = {str(name): str(kind) for name, kind, *_ in lines.connection.execute("DESCRIBE focus_rows").fetchall()}
    accounts = {"BillingAccountId": account, "BillingAccountName": account}
    filled = [{**accounts, **texts, **row} for row in rows]
    frame = pl.DataFrame(
        {name: [row.get(name) for row in filled] for name in columns},
        schema={name: _dtype(kinds[name]) for name in columns},
    ).with_columns(place=pl.int_range(2**61, 2**61 + len(filled), dtype=pl.Int64))
    lines.engine.register("focus_extras", frame)


def _dtype(kind: str) -> pl.DataType:
    if kind.startswith("DECIMAL"):
        digits, decimals = (int(part) for part in kind.removeprefix("DECIMAL(").removesuffix(")").split(","))
        return pl.Decimal(digits, decimals)
    return {"VARCHAR": pl.String(), "BIGINT": pl.Int64()}.get(kind, pl.Datetime("us", "UTC"))


def _sums(lines: Lines) -> dict[str, Any]:
    """Sum what the rows say, in pUSD."""
    sums = ", ".join(
        f'cast(coalesce(sum("{name}"), 0) * 1000000000000 as decimal(38, 0)) as "{name}"' for name in _COSTS
    )
    none = 'sum(case when "x_ListPrice" = \'none\' then "ListCost" end)'
    return lines.engine.fetch(
        f'select count(*) as rows, cast(coalesce(sum("x_RequestCount"), 0) as bigint) as requests, {sums}, '
        f"cast(coalesce({none}, 0) * 1000000000000 as decimal(38, 0)) as without_list from focus_all"
    ).row(0, named=True)


def _unpriced(lines: Lines, out: Path) -> tuple[Path | None, tuple[tuple[str, int], ...]]:
    """Write what has no price beside the export; an older file of that name would be of another export."""
    ending = writing.kind_of(out)
    beside = out.with_name(f"{out.name[: -len(ending) - 1]}.unpriced.csv")
    found = lines.engine.fetch(
        "select coalesce(reason, price_status) as why, cast(sum(requests) as bigint) as requests from focus_unpriced "
        "group by all order by requests desc, why"
    )
    if not len(found):
        beside.unlink(missing_ok=True)
        return None, ()
    writing.copy(lines.connection, "focus_unpriced", beside, order="all")
    return beside, tuple((str(why), int(requests)) for why, requests in found.rows())
