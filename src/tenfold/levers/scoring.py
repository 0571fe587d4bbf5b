"""The scores of chosen models from an evals file: one per request or feature, averaged exactly, as frames for SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Literal, NamedTuple

import polars as pl

from tenfold.errors import near
from tenfold.levers.evals import SCORE_UNITS, Evals
from tenfold.levers.matching import unknown_values
from tenfold.prices.book import PriceBook
from tenfold.prices.naming import model_key
from tenfold.store.engines import Engine

_NAMED = ("provider", "model")
_MEANS = ("cost_pusd", "input_tokens", "output_tokens", "latency_us")


class Unmatched(NamedTuple):
    """What an evals file names and the log does not have.

    Args:
        request_ids: Number of request ids that no request has.
        features: Features that no request has.
    """

    request_ids: int
    features: tuple[str, ...]


def least_score(threshold: Decimal | float) -> int:
    """Write a threshold in the unit of ``score_e12``: a score reaches it if it is at least this.

    Args:
        threshold: ``min_quality``, as it was written.

    Returns:
        Units of 1e-12, rounded up.
    """
    return math.ceil(Fraction(str(threshold)) * SCORE_UNITS)


def scores(
    evals: Evals, book: PriceBook, wanted: Iterable[tuple[str, str]], by: Literal["request_id", "feature"]
) -> pl.DataFrame:
    """Take the scores of some models, one row per model and request or feature.

    Args:
        evals: The evals file.
        book: The price book, for the models' names.
        wanted: (provider, model) as the assumptions or the log write them.
        by: What a score is of. A row of the file with both counts for both.

    Returns:
        ``provider``, ``model`` (as wanted), ``by``; ``evals`` (rows averaged), ``score_e12`` (mean, rounded down to
        1e-12, so that it reaches a threshold of at most 12 decimals exactly if the mean does); ``cost_pusd``,
        ``input_tokens``, ``output_tokens``, ``latency_us`` (means over the rows that have them, half even; NULL where
        none has); ``is_truncated`` (an answer ended at its limit; NULL where unknown). All Int64 but names and the
        last; in order of the keys.
    """
    return (
        _rows_of(evals, book, wanted)
        .filter(pl.col(by).is_not_null())
        .group_by(*_NAMED, by)
        .agg(
            pl.len().cast(pl.Int64).alias("evals"),
            (_wide("score_e12") // pl.len().cast(pl.Int128)).cast(pl.Int64).alias("score_e12"),
            *(_mean(name) for name in _MEANS),
            (pl.col("finish_reason") == "length").any(ignore_nulls=False).alias("is_truncated"),
        )
        .sort(*_NAMED, by)
    )


def register(
    engine: Engine, evals: Evals, book: PriceBook, wanted: Iterable[tuple[str, str]], name: str = "evals"
) -> None:
    """Make scores readable for SQL, as ``<name>_by_request`` and ``<name>_by_feature`` (columns: ``scores``).

    Args:
        engine: Where.
        evals: The evals file.
        book: The price book.
        wanted: (provider, model) pairs; the target, or the log's own models.
        name: What the two tables' names begin with.
    """
    pairs = tuple(wanted)
    engine.register(f"{name}_by_request", scores(evals, book, pairs, "request_id"))
    engine.register(f"{name}_by_feature", scores(evals, book, pairs, "feature"))


def unmatched(engine: Engine, evals: Evals) -> Unmatched:
    """Count what the evals file names and the log does not have, so that nothing is lost in silence.

    Args:
        engine: Engine with the log's requests in reach.
        evals: The evals file.

    Returns:
        The ids, counted, and the features.
    """
    return Unmatched(len(_lacking(engine, evals, "request_id")), tuple(_lacking(engine, evals, "feature")))


def unknown_names(engine: Engine, evals: Evals) -> list[str]:
    """Name what the evals file has scores of and the log does not have.

    Args:
        engine: Engine with the log's requests in reach.
        evals: The evals file.

    Returns:
        One sentence for each feature, with the near one, and one for all request ids.
    """
    said = unknown_values(engine, "feature", _lacking(engine, evals, "feature"))
    ids = _lacking(engine, evals, "request_id")
    if ids:
        more = f" So with {len(ids) - 1:,} more of its request ids." if len(ids) > 1 else ""
        said.append(unknown_values(engine, "request_id", ids[:1])[0] + more)
    return said


def lacking_models(evals: Evals, book: PriceBook, wanted: Iterable[tuple[str, str]]) -> list[str]:
    """Name the wanted models that the evals file has no score of.

    Args:
        evals: The evals file.
        book: The price book.
        wanted: (provider, model) pairs.

    Returns:
        One sentence for each, with the models that there are and the near one.
    """
    pairs = list(dict.fromkeys(wanted))
    found = set(_rows_of(evals, book, pairs).select(*_NAMED).iter_rows())
    has = ", ".join(evals.models[:10]) + (", ..." if len(evals.models) > 10 else "")
    return [
        f'{evals.file} has no score of "{model}" ({provider}).{near(model, evals.models)} It has scores of {has}'
        for provider, model in pairs
        if (provider, model) not in found
    ]


def scale_note(evals: Evals, threshold: Decimal | float) -> str:
    """Say that scores and threshold seem to be on different scales: 95 reaches 0.9, and so does 10.

    Args:
        evals: The evals file.
        threshold: ``min_quality``.

    Returns:
        One sentence; empty where both may be on one scale.
    """
    most = max(evals.frame["score_e12"].drop_nulls(), default=0)
    if 0 < threshold <= 1 and most > SCORE_UNITS:
        highest = (Decimal(most) / SCORE_UNITS).normalize()
        return f"scores in {evals.file} reach {highest:f}, but min_quality is {threshold}: are they on one scale?"
    return ""


def _rows_of(evals: Evals, book: PriceBook, wanted: Iterable[tuple[str, str]]) -> pl.DataFrame:
    spelt = [
        (provider, model, name)
        for provider, model in dict.fromkeys(wanted)
        for name in evals.models
        if model_key(book, provider, name) == model_key(book, provider, model)
    ]
    names = pl.DataFrame(spelt, schema=dict.fromkeys((*_NAMED, "spelt"), pl.String()), orient="row")
    return names.join(evals.frame.rename({"model": "spelt"}), on="spelt", how="inner")


def _lacking(engine: Engine, evals: Evals, column: str) -> list[str]:
    named = evals.frame.select(column).drop_nulls().unique()
    if not len(named):
        return []
    engine.register("evals_named", named)
    sql = (
        f"select n.{column} as v from evals_named n "
        f"left join (select distinct {column} from requests) r on r.{column} = n.{column} "
        f"where r.{column} is null order by v"
    )
    return engine.fetch(sql)["v"].to_list()


def _wide(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int128).sum()


def _mean(name: str) -> pl.Expr:
    """Write a mean of whole numbers, rounded half even; NULL over nothing."""
    total, n = _wide(name), pl.col(name).count().cast(pl.Int128)
    whole, rest = total // n, total % n
    up = (2 * rest > n) | ((2 * rest == n) & (whole % 2 == 1))
    return pl.when(n > 0).then(whole + up.cast(pl.Int128)).cast(pl.Int64).alias(name)
