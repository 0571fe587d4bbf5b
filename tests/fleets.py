"""Fleets and their logs by hand, and a slow second reading of what a fleet's requests cost: no code of the package."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import stores

from tenfold.ledger import Ledger, Window
from tenfold.prices import price_book
from tenfold.serving.hosted import on_fleet

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
START = datetime(2026, 7, 1, tzinfo=UTC)
API = """
provider = "openai"
[[price]]
model = "m1"
input = 1
cache_read = 0.1
output = 4
source = "by hand"
checked = 2026-11-29
"""


def pool(model=MODEL, gpu="h100-sxm", replicas=1, usd=2, **more):
    """One [[pool]] table as text; numbers of weights and KV cache are stated, so that nothing is assumed."""
    keys = {"weights": "bf16", "kv": "bf16", **more}
    bare = ("tp", "max_batch", "from", "to")
    lines = [f"{key} = {value if key in bare else repr(value)}" for key, value in keys.items()]
    head = f'[[pool]]\nmodel = "{model}"\ngpu = "{gpu}"\nreplicas = {replicas}\nusd_per_hour = {usd}\n'
    return (head + "\n".join(lines) + "\n").replace("'", '"')


def fleet_file(folder, *pools):
    """A fleet file of these tables."""
    file = folder / "fleet.toml"
    file.write_text("\n".join(pools))
    return file


def at(seconds):
    """An instant, so many seconds after the start."""
    return START + timedelta(seconds=seconds)


def request(start_s, lasts_s, uncached=1000, cached=0, output=100, **more):
    """A self-hosted request; `lasts_s` None where its duration is not known."""
    return {
        "ts": at(start_s), "duration_ms": None if lasts_s is None else lasts_s * 1000.0, "provider": "self-hosted",
        "model": MODEL, "input_tokens": uncached + cached, "cache_read_tokens": cached, "output_tokens": output, **more,
    }  # fmt: skip


def ledger_of(requests, folder, since=None, until=None):
    """The ledger of requests by hand; `m1` of openai has a price."""
    (folder / "prices").mkdir(exist_ok=True)
    (folder / "prices" / "openai.toml").write_text(API)
    rows = [{"request_id": str(number), **one} for number, one in enumerate(requests)]
    return Ledger(stores.log_of(rows), price_book(folder / "prices"), Window(since, until))


def carried_pusd(ledger):
    """Cost of the self-hosted requests, one by one."""
    meters = ("uncached_input_pusd", "cache_read_pusd", "cache_write_pusd", "cache_write_long_pusd", "output_pusd")
    rows = ledger.frame().filter(price_status="priced").rows(named=True)
    with ledger.session() as session:
        hosted = {key for key, provider, *_ in session.keys if provider == "self-hosted"}
    return sum(row[meter] for row in rows if row["price_key"] in hosted for meter in meters)


def busy_us(requests, since_s, until_s, replicas):
    """Replica-microseconds with a request: every microsecond between two changes is looked at by itself.

    Where each request names its replica, per replica; else as many replicas as have one request each.
    """
    timed = [one for one in requests if one["duration_ms"]]
    inside = [one for one in timed if since_s <= (one["ts"] - START).total_seconds() < until_s]
    named = bool(inside) and all(one.get("replica") for one in inside)
    lanes = defaultdict(list)
    for one in timed:
        start = round((one["ts"] - START) / timedelta(microseconds=1))
        end = min(start + round(one["duration_ms"] * 1000), round(until_s * 1e6))
        lanes[one.get("replica") if named else None].append((max(start, round(since_s * 1e6)), end))
    total = 0
    for spans in lanes.values():
        edges = sorted({edge for span in spans for edge in span})
        for left, right in pairwise(edges):
            under_way = sum(start <= left and right <= end for start, end in spans)
            total += min(under_way, 1 if named else replicas) * (right - left)
    return total


def rates(busy_pusd, tokens, seconds):
    """Rates, rounded down: the busy time's cost by GPU time."""
    whole = sum(Fraction(second) * count for second, count in zip(seconds, tokens, strict=True))
    return tuple(int(busy_pusd * Fraction(second) / whole) for second in seconds)


def on(requests, folder, *pools, hours=1.0, replicas=1, usd=2, stated=True):
    """A log on its fleet; where `hours` gives the window, pools state that they ran throughout it unless they say."""
    since, until = (START, at(hours * 3600)) if hours else (None, None)
    texts = list(pools or (pool(replicas=replicas, usd=usd),))
    if hours and stated:
        for key, instant in (("from", since), ("to", until)):
            texts = [text if f"\n{key} = " in text else f"{text}{key} = {instant.isoformat()}\n" for text in texts]
    return on_fleet(ledger_of(requests, folder, since, until), fleet_file(folder, *texts))
