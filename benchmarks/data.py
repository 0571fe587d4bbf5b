"""A quarter of requests, made on the spot and loaded by tenfold's own load: rows by arithmetic on their number.

Every run makes the same rows. ``store(rows)`` gives the database, once a size and run; ``book(versions)`` a price book of
the same models with a known number of price changes in the quarter, all at midnight.
"""

from __future__ import annotations

import sys
import time
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import folder

if TYPE_CHECKING:
    from tenfold.prices.book import PriceBook

DATA = (
    "a quarter of 92 days, 27 columns: 20 teams with 5 features each, of which each uses 4 of 40 models of three providers "
    "(one of them for 7 in 10 requests), a tier by feature and model, six meters in use; cached tokens unknown in 4 % of "
    "requests, 2 % of unpriced models, 1 % failed and not billed, 0.1 % without input tokens, 0.01 % without a time; 40 % of "
    "prompts of 4,000 an hour, by a power law; appended to the store's tables, the cube built by the load's own code"
)
START, DAYS = date(2026, 7, 1), 92
PART = 10_000_000
OPENAI = (
    *(
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-4.1",
        "gpt-4.1-mini",
        "gpt-4.1-nano",
        "gpt-5",
        "gpt-5-mini",
        "gpt-5-nano",
        "gpt-5.1",
    ),
    *(
        "gpt-5.2",
        "gpt-5.3",
        "gpt-5.4",
        "gpt-5.4-mini",
        "gpt-5.4-nano",
        "gpt-5.5",
        "gpt-6-luna",
        "gpt-6-sol",
        "o3",
        "o4-mini",
    ),
)
ANTHROPIC = (
    *(
        "claude-haiku-4-5",
        "claude-opus-4-0",
        "claude-opus-4-1",
        "claude-opus-4-5",
        "claude-opus-4-6",
        "claude-opus-4-7",
    ),
    *("claude-opus-4-8", "claude-sonnet-4-0", "claude-sonnet-4-5", "claude-sonnet-4-6", "claude-sonnet-5"),
)
GOOGLE = (
    *("gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.5-pro", "gemini-3-flash-preview", "gemini-3.1-flash-lite"),
    *("gemini-3.1-pro-preview", "gemini-3.5-flash", "gemini-3.5-flash-lite", "gemini-3.6-flash", "gemini-3.7-flash"),
)
PROVIDERS = {"openai": OPENAI, "anthropic": ANTHROPIC, "google": GOOGLE}
MODELS = tuple((provider, model) for provider, names in PROVIDERS.items() for model in names)
TIERS = ("standard", "batch", "flex", "priority")
# In which no price is filed, so that there is always something to leave unpriced.
UNPRICED = "unheard-of-1"

# u, v, w: three independent 63-bit numbers a row.
_ROWS = """
with numbered as (
  select range as i, cast(hash(range) >> 1 as bigint) as u, cast(hash(range + 3000000019) >> 1 as bigint) as v,
    cast(hash(range + 7000000001) >> 1 as bigint) as w
  from range({first}, {last})
),
drawn as (
  select *, u % 100 as feature, case when (u // 100) % 10 < 7 then 0 else 1 + (u // 1000) % 3 end as choice,
    (v % 9000) * (1 + (v // 9000) % 3) + 40 as whole, w % 1400 + 1 as answer, (v // 27000) % 100 as cached
  from numbered
),
chosen as (
  select *, (feature * 7 + choice * 11) % 40 as m, case when (w // 1400) % 250 = 0 then whole + 250000 else whole end as input
  from drawn
),
made as (
  select *, {models}[m + 1] as known_model, m < {openai} as is_openai,
    m >= {openai} and m < {openai} + {anthropic} as is_anthropic, {tiers}[(feature // 9 + 3 * choice) % 10 + 1] as tier
  from chosen
)
select
  'req_' || hex(u) || hex(i) as request_id,
  case when (w // 7000) % 10000 = 0 then null
    else make_timestamp(cast({start_us} + i * ({days} * 86400000000.0 / {rows}) + (w % 3000) * 1000 as bigint)) end as ts,
  cast(600 + w % 21000 as double) as duration_ms,
  cast(100 + w % 500 as double) as ttft_ms,
  {projects}[feature % 4 + 1] as project,
  {teams}[feature % 20 + 1] as team,
  {features}[feature + 1] as feature,
  'user ' || (v // 7) % 50000 as user_id,
  'session ' || ((i // 600) * 100 + i % 100) as session_id,
  {keys}[feature % 20 + 1] as api_key_id,
  case when is_openai then 'openai' when is_anthropic then 'anthropic' else 'google' end as provider,
  case when feature in (17, 58) and choice < 3 then '{unpriced}' else known_model end as model,
  tier as service_tier,
  'chat' as operation,
  tier <> 'batch' and v % 4 <> 0 as is_stream,
  case when (w // 300) % 1000 = 0 then null else input end as input_tokens,
  case when feature >= 96 or (w // 300) % 1000 = 0 then null when cached < 40 then 0 else input * (cached - 30) // 100 // 128 * 128 end
    as cache_read_tokens,
  case when not is_anthropic then null when cached between 40 and 60 then input // 8 else 0 end as cache_write_tokens,
  case when not is_anthropic then null when cached between 40 and 44 then input // 16 else 0 end
    as cache_write_long_tokens,
  answer as output_tokens,
  case when m % 3 <> 0 then answer // 2 end as reasoning_tokens,
  hex(hash(case when v % 5 < 2
    then i * {hours} // {rows} * 4000 + cast(pow((v // 5 % 1000000) / 1000000.0, 3) * 4000 as bigint) else -1 - i end))
    as prompt_hash,
  hex(hash((v // 13) % 5)) as params_hash,
  cast((w // 50) % 40 = 0 as integer) as attempt,
  case when (w // 11) % 100 = 0 then 'error' else 'success' end as status,
  case when (w // 11) % 100 = 0 then null when (w // 17) % 60 = 0 then 'length' else 'stop' end as finish_reason,
  (w // 11) % 100 <> 0 as is_billable
from made
"""
# What a load adds to a row, but for the hash of its id.
_STORED = """
insert into requests by name
select g.*, 'table' as source_format, '{file}' as source_file, 'reported' as token_source, 1 as load_id, k.price_key,
  g.team as team_logged, g.feature as feature_logged
from ({made}) as g
join price_keys as k on k.provider = g.provider and k.model = g.model and k.service_tier = g.service_tier
"""


@cache
def store(rows: int) -> Path:
    """Make the store of some size, or find it in a kept folder.

    Args:
        rows: Requests.

    Returns:
        The database file.
    """
    from tenfold.logs import cube
    from tenfold.prices import price_book
    from tenfold.store.database import Store

    made = folder() / f"{rows}.duckdb"
    if made.exists():
        return made
    began, db = time.perf_counter(), folder() / f"{rows}.making.duckdb"
    db.unlink(missing_ok=True)
    with Store(db).writing() as connection:
        keys = sorted(
            {(p, m, t) for p, m in MODELS for t in TIERS} | {(p, UNPRICED, t) for p in PROVIDERS for t in TIERS}
        )
        connection.executemany(
            "insert into price_keys values (?, ?, ?, ?, '')", [(n, *key) for n, key in enumerate(keys, 1)]
        )
        for first in range(0, rows, PART):
            drawn = made_rows(rows, first, min(first + PART, rows))
            connection.execute(_STORED.format(made=drawn, file=f"quarter-{rows}.parquet"))
        connection.execute(
            "insert into loads by name select 1 as load_id, timestamp '2026-10-01' as loaded_at, 'quarter' as source_file, "
            f"md5('{rows}') as sha256, '' as settings, 'table' as source_format, {rows} as lines, {rows} as requests, "
            "0 as duplicates, 0 as merged, 0 as rejected, 0 as flagged, 0 as ignored, 0 as buckets"
        )
        cube.rebuild(connection, price_book().thresholds)
        connection.execute("checkpoint")
    db.rename(made)
    print(f"data: {rows:,} requests made in {time.perf_counter() - began:,.0f} s", file=sys.stderr)
    return made


def made_rows(rows: int, first: int = 0, last: int | None = None) -> str:
    """Write the SELECT of some of the rows.

    Args:
        rows: Requests of the whole quarter.
        first: First row.
        last: Row after the last one; all by default.

    Returns:
        DuckDB SQL; columns as in `requests`.
    """
    features = [f"feature {number % 20}-{number // 20}" for number in range(100)]
    return _ROWS.format(
        first=first, last=rows if last is None else last, rows=rows, days=DAYS, hours=24 * DAYS, unpriced=UNPRICED,
        start_us=(START - date(1970, 1, 1)).days * 86_400_000_000,
        models=[model for _, model in MODELS], openai=len(OPENAI), anthropic=len(ANTHROPIC),
        tiers=["standard"] * 7 + ["batch", "flex", "priority"], features=features,
        teams=[f"team {number}" for number in range(20)], keys=[f"key {number}" for number in range(20)],
        projects=[f"project {number}" for number in range(4)],
    )  # fmt: skip


def book(versions: int = 6) -> PriceBook:
    """Make a price book of the same models, in which every price changes some times in the quarter.

    Args:
        versions: Price lists of each model and tier, spread over the quarter.

    Returns:
        The book; its entries grow in step with ``versions``.
    """
    import tenfold as tf

    made = folder() / f"prices-{versions}"
    made.mkdir(exist_ok=True)
    for provider, names in PROVIDERS.items():
        entries = [f'provider = "{provider}"\n']
        for place, model in enumerate(names):
            for tier, share in zip(TIERS, (100, 50, 60, 150), strict=True):
                entries += [
                    _entry(place, model, tier, share, number * DAYS // versions, number, band)
                    for number in range(versions)
                    for band in (0, 200_000)
                ]
        (made / f"{provider}.toml").write_text("\n".join(entries))
    return tf.price_book(made)


def _entry(place: int, model: str, tier: str, share: int, day: int, number: int, band: int) -> str:
    base = (25 + 10 * place + number) * share * (2 if band else 1)  # USD per million, in thousandths of a tenth
    rates = {"input": 10, "cache_read": 1, "cache_write": 12, "cache_write_long": 20, "output": 40, "reasoning": 44}
    lines = ["[[price]]", f'model = "{model}"', f'service_tier = "{tier}"']
    if number:
        lines.append(f"valid_from = {START + timedelta(days=day)}")
    if band:
        lines.append(f"above_input_tokens = {band}")
    lines += [f"{name} = {base * times / 1_000_000:.6f}" for name, times in rates.items()]
    lines += ['source = "made for a benchmark"', f"checked = {START}"]
    return "\n".join(lines) + "\n"
