"""A labelled sample of a semantic cache: what it hit, what of that was wrong, and what the log says it is worth."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, cast

import polars as pl

from tenfold.errors import AssumptionError, near
from tenfold.levers.baselines import semantic_net
from tenfold.levers.tally import fact
from tenfold.levers.values import Reader, amount, path, table
from tenfold.money import PUSD_PER_USD, usd_text
from tenfold.store import steps
from tenfold.store.engines import Engine

_STEP = "lever_skip_sampled"
_KEYS: dict[str, Reader] = {"sample": path, "wrong_usd": amount, "lookup_usd": amount}
SEMANTIC = table(_KEYS, required=("sample", "wrong_usd"))
_COLUMNS = ("request_id", "hit", "wrong")
_FLAGS = {"1": 1, "true": 1, "0": 0, "false": 0}


class Traffic(NamedTuple):
    """The traffic that a sample stands for.

    Args:
        requests: Billed requests in where.
        cost_pusd: What they cost.
    """

    requests: int
    cost_pusd: int


def read_sample(file: Path) -> pl.DataFrame:
    """Read a labelled sample: a CSV of ``request_id``, ``hit`` and ``wrong``.

    Args:
        file: The file. ``hit`` says whether the cache would have answered (1 or 0); ``wrong``, of hits, whether that
            answer was wrong, empty where nobody looked.

    Returns:
        One row a request: ``request_id``, ``is_hit``, ``is_wrong`` (NULL where not labelled).

    Raises:
        AssumptionError: The file cannot be read, or a column or value cannot be used; names the file and the line.
    """
    try:
        frame = pl.read_csv(file, infer_schema=False, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise AssumptionError(
            f"{file}: cannot be read as CSV: {str(error).splitlines()[0]}. A path is relative to the assumptions file"
        ) from error
    for name in frame.columns:
        if name not in _COLUMNS:
            raise AssumptionError(f'{file}: unknown column "{name}".{near(name, _COLUMNS)} It takes {_TAKES}')
    if len(frame.columns) < len(_COLUMNS):
        raise AssumptionError(f"{file}: lacks {', '.join(set(_COLUMNS) - set(frame.columns))}. It takes {_TAKES}")
    seen: set[str] = set()
    rows: list[tuple[str, int, int | None]] = []
    for line, row in enumerate(frame.rows(named=True), 2):
        place = f"{file}, line {line}"
        key = row["request_id"]
        if not key:
            raise AssumptionError(f"{place}: request_id is empty")
        if key in seen:
            raise AssumptionError(f'{place}: request_id "{key}" stands twice')
        seen.add(key)
        hit, wrong = (_flag(row[name], f"{place}: {name}") for name in ("hit", "wrong"))
        if hit is None:
            raise AssumptionError(f"{place}: hit is empty; it must be 1 or 0")
        if wrong is not None and not hit:
            raise AssumptionError(f"{place}: wrong is of a hit only; leave it empty")
        rows.append((key, hit, wrong))
    schema = {"request_id": pl.String, "is_hit": pl.Int64, "is_wrong": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


_TAKES = "request_id, hit (1 or 0) and wrong (1 or 0 of a hit, empty where nobody looked)"


def _flag(value: str | None, place: str) -> int | None:
    text = (value or "").strip().lower()
    if text and text not in _FLAGS:
        raise AssumptionError(f'{place} must be 1 or 0, not "{value}"')
    return _FLAGS[text] if text else None


def semantic_facts(engine: Engine, given: dict[str, Any], traffic: Traffic) -> list[dict[str, Any]]:
    """Value a semantic cache from its sample: evidence, never part of a saving.

    The sample's share of spend, not of requests, is what hits are worth: short prompts hit more often. Wrong answers
    are charged at the upper end of Wilson's interval.

    Args:
        engine: Engine with the log in reach.
        given: The ``semantic`` table.
        traffic: What the sample stands for.

    Returns:
        Facts; of money only where hits were labelled and sampled requests are in the log.

    Raises:
        AssumptionError: The sample cannot be used.
    """
    sample = read_sample(given["sample"])
    engine.register("lever_skip_sample", sample.select("request_id", "is_hit"))
    found = engine.fetch(steps.filled(_STEP, sample="lever_skip_sample")).row(0, named=True)
    sampled, hits, cost, hit_cost = (int(found[name]) for name in ("sampled", "hits", "cost_pusd", "hit_pusd"))
    labels = sample["is_wrong"].drop_nulls()
    facts = [
        fact("semantic_sampled", sampled, "requests of the sample found in where, with a price", _STEP),
        fact("semantic_not_found", len(sample) - sampled, "requests of the sample that are not", _STEP),
        fact("semantic_labelled_hits", len(labels), "hits that somebody judged", _STEP),
    ]
    if not sampled or not cost or not len(labels):
        return [*facts, fact("semantic_net_usd", None, "USD: needs judged hits of requests in this log", _STEP)]
    share, spend_share = Fraction(hits, sampled), Fraction(hit_cost, cost)
    net = semantic_net(
        saving_pusd=round(spend_share * traffic.cost_pusd),
        hits=round(share * traffic.requests),
        labelled=len(labels),
        wrong=int(labels.sum()),
        wrong_pusd=_pusd(given["wrong_usd"]),
        lookups_pusd=_pusd(given.get("lookup_usd", Decimal(0))) * traffic.requests,
    )
    bound = f"share of judged hits; 95 % interval {net.bound.low:.4f} to {net.bound.high:.4f}"
    return [
        *facts,
        fact("semantic_hit_share_of_requests", share_text(share), "ratio, in the sample", _STEP),
        fact("semantic_hit_share_of_spend", share_text(spend_share), "ratio, in the sample", _STEP),
        fact("semantic_wrong_share", f"{net.wrong_share:.4f}", bound, _STEP),
        fact("semantic_net_usd", usd_text(net.net_pusd), "USD, wrong answers at the upper end of the interval", _STEP),
        fact("semantic_net_mid_usd", usd_text(net.net_mid_pusd), "USD, wrong answers at the share itself", _STEP),
        fact(
            "semantic_break_even_wrong_usd",
            usd_text(net.break_even_wrong_pusd),
            "USD a wrong answer may cost before the cache loses, at the upper end",
            _STEP,
        ),
    ]


def share_text(share: Fraction) -> str:
    """Write a share for evidence, with four decimals.

    Args:
        share: The share, 1 being all.

    Returns:
        The decimal text.
    """
    return f"{float(share):.4f}"


def _pusd(usd: object) -> int:
    return int(cast("Decimal", usd) * PUSD_PER_USD)
