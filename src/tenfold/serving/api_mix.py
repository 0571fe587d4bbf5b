"""What an API bills for a traffic: its measured mix of computed, cached and output tokens, and its busiest hour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

import polars as pl

from tenfold.display import counted
from tenfold.errors import NotEvaluable
from tenfold.ledger import Ledger, Session
from tenfold.ledger.session import DAYS_PER_MONTH
from tenfold.money import divided
from tenfold.prices.meters import meters
from tenfold.serving.fleet import PROVIDER
from tenfold.store import schema, steps
from tenfold.store.database import quoted

# Days below which nothing is projected to a month.
LEAST_DAYS = 7
_CACHED = ("cache_read", "cache_read_audio", "cache_read_image", "cache_read_video")
_CACHE = ("cache_read", "cache_write", "cache_write_long")
_OUTPUT = ("output", "reasoning", "output_audio", "output_image", "output_video")
# Why a request has no price, beside a model without one.
_WHY = {
    "unpriced_meter": "with a kind of tokens that has no rate",
    "usage_missing": "without token counts",
    "ambiguous": "of which the price is ambiguous",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of tokens.

    Args:
        tokens: How many.
        pusd: What the API bills for them.
    """

    tokens: int
    pusd: int

    @property
    def pusd_per_million(self) -> int | None:
        """Mean price of a million; None where there are none."""
        return divided(self.pusd * 10**6, self.tokens) if self.tokens else None


@dataclass(frozen=True, slots=True)
class Mix:
    """Traffic as an API bills it.

    Args:
        requests: Requests with a price.
        unpriced_requests: Requests without one: in no figure.
        computed: Prompt tokens that are not read from a cache; writes to it too.
        cached: Prompt tokens that are.
        output: Answer tokens.
        other_pusd: What it bills beside tokens (searches, fees a request): not part of the comparison.
        peak_tokens_per_s: Output tokens a second in the busiest hour.
        peak_at: Start of that hour (aware).
        days: Days of the window.
        label: ``measured``: as these requests were billed; ``modelled``: as another model would bill them.
        source: Whose prices.
        unpriced_tokens: Known tokens of the requests without a price.
        why_unpriced: Why those have none; empty where all have one.
        as_input_tokens: Tokens read from a cache or written to one for which the API has no rate: billed as input.
    """

    requests: int
    unpriced_requests: int
    computed: Kind
    cached: Kind
    output: Kind
    other_pusd: int
    peak_tokens_per_s: float
    peak_at: datetime
    days: int
    label: str
    source: str
    unpriced_tokens: int = 0
    why_unpriced: str = ""
    as_input_tokens: int = 0

    @property
    def tokens(self) -> int:
        """All tokens, of prompts and answers."""
        return self.computed.tokens + self.cached.tokens + self.output.tokens

    @property
    def pusd(self) -> int:
        """What the API bills for tokens."""
        return self.computed.pusd + self.cached.pusd + self.output.pusd

    @property
    def tokens_per_month(self) -> Fraction | None:
        """Tokens of a month of 30.4 days at this pace; None below seven days."""
        return self.tokens * DAYS_PER_MONTH / self.days if self.days >= LEAST_DAYS else None


def api_mix(ledger: Ledger, *, where: str | None = None, api: tuple[str, str] | None = None) -> Mix:
    """Measure traffic and its price at an API.

    Args:
        ledger: The priced log.
        where: Condition on requests, checked already; by default those that were not self-hosted, or with ``api`` those
            that were.
        api: Provider and model whose prices to take instead of the requests' own.

    Returns:
        The mix.

    Raises:
        NotEvaluable: No request fits, or none has a price and a time; says which of both, and what is missing.
    """
    hosted = f"coalesce(provider, '') {'=' if api else '<>'} {quoted(PROVIDER)}"
    condition = f"(\n{where or hosted}\n)"
    with ledger.session() as session:
        priced, as_input = ("priced_requests", []) if api is None else _billed_by(session, api)
        sums = ",\n  ".join(
            f"cast(sum({meter.name}_units) as bigint) as {meter.name}_units, "
            f"cast(sum({meter.name}_pusd) as decimal(38, 0)) as {meter.name}_pusd"
            for meter in session.meters
        )
        sql = steps.filled("breakeven_hours", priced=priced, condition=condition, sums=sums)
        hours = session.engine.fetch(sql)
    if hours.is_empty():
        whose = "" if where else "self-hosted " if api else "API "
        raise NotEvaluable(
            f"no {whose}request with a price and a time to compare: "
            + ("widen --where" if where else "name the traffic with --where, or an API's price with --api-model")
        )
    why = _why_unpriced(ledger, hours, api)
    if not hours["is_priced"].any():
        raise NotEvaluable(f"none of {counted(int(hours['requests'].sum()), 'request')} has a price to compare: {why}")
    return _mix(ledger, hours, api, why, as_input)


def _why_unpriced(ledger: Ledger, hours: pl.DataFrame, api: tuple[str, str] | None) -> str:
    """Say why requests have no price, and the way out; empty where all have one."""
    missing = hours.filter(~pl.col("is_priced"))
    count = {name: int(missing[name].sum()) for name in (*_WHY, "own", "unpriced_model")}
    said = [f"{counted(count[name], 'request')} {text}" for name, text in _WHY.items() if count[name]]
    if count["unpriced_model"]:
        own = count["own"] if api is None else 0
        if own:
            asked = "name the API to compare with, --api-model PROVIDER/MODEL"
            said.append(f"{counted(own, 'request')} self-hosted: {asked}")
        if api is not None:
            found = ledger.book.match(*api, "standard", "")
            last: datetime = missing.sort("hour").row(-1, named=True)["hour"]
            said.append(found.missing(last.replace(tzinfo=UTC)))
        elif count["unpriced_model"] > own:
            unknown = counted(count["unpriced_model"] - own, "request")
            said.append(f"{unknown} to models without a price: `tenfold cost` names them")
    return "; ".join(said)


def _billed_by(session: Session, api: tuple[str, str]) -> tuple[str, list[str]]:
    """Price the log's requests by another model's entries in force when each ran.

    Tokens of a cache for which the API has no rate are input there: an API without a cache bills the whole prompt.

    Returns:
        The priced view, and the meters that are billed as input.
    """
    found = session.book.match(*api, "standard", "")
    if not found.lists:
        raise NotEvaluable(f"--api-model {'/'.join(api)}: {found.reason}")
    change = {"provider": api[0], "model": api[1], "service_tier": "standard", "region": ""}
    keys = session.add_keys({key: change for key, *_ in session.keys})
    session.engine.register(
        "breakeven_keys",
        pl.DataFrame(list(keys.items()), orient="row", schema={"own_key": pl.Int32, "api_key": pl.Int32}),
    )
    columns = ", ".join(f"requests.{name}" for name in schema.names("requests") if name != "price_key")
    steps.run(session.engine, "breakeven_requests", columns=columns)
    card = session.card.frame
    is_api = pl.col("price_key").is_in(list(keys.values()))
    as_input = [name for name in _CACHE if card.filter(is_api)[f"rate_{name}"].has_nulls()]
    filled = {
        f"rate_{name}": pl.when(is_api)
        .then(pl.coalesce(f"rate_{name}", "rate_uncached_input"))
        .otherwise(pl.col(f"rate_{name}"))
        for name in as_input
    }
    session.engine.register("day_map", card.with_columns(**filled))
    session.price("breakeven_requests", "breakeven_priced")
    return "breakeven_priced", as_input


def _mix(ledger: Ledger, hours: pl.DataFrame, api: tuple[str, str] | None, why: str, as_input: Iterable[str]) -> Mix:
    priced = hours.filter("is_priced")

    def kind(names: Iterable[str]) -> Kind:
        found = [name for name in names if f"{name}_units" in priced.columns]
        return Kind(
            sum(int(priced[f"{one}_units"].sum() or 0) for one in found),
            sum(int(priced[f"{one}_pusd"].sum() or 0) for one in found),
        )

    tokens = [meter.name for meter in meters() if meter.unit == "tokens"]
    others = [meter.name for meter in meters() if meter.unit != "tokens"]
    peak = priced.sort("output_tokens", "hour", descending=[True, False]).row(0, named=True)
    return Mix(
        requests=int(priced["requests"].sum()),
        unpriced_requests=int(hours["requests"].sum()) - int(priced["requests"].sum()),
        computed=kind(name for name in tokens if name not in (*_CACHED, *_OUTPUT)),
        cached=kind(_CACHED),
        output=kind(_OUTPUT),
        other_pusd=kind(others).pusd,
        peak_tokens_per_s=peak["output_tokens"] / 3600,
        peak_at=peak["hour"].replace(tzinfo=UTC),
        days=len(ledger.window.dates([hour.date() for hour in priced["hour"]])),
        label="modelled" if api else "measured",
        source="/".join(api) if api else "as billed",
        unpriced_tokens=int(hours["tokens"].sum()) - int(priced["tokens"].sum()),
        why_unpriced=why,
        as_input_tokens=kind(as_input).tokens,
    )
