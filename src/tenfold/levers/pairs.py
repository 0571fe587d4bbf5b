"""A paired sample of shorter prompts and answers: what they came to against the log's own, by feature where named."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from tenfold.errors import AssumptionError
from tenfold.levers.evals import SCORE_UNITS, Evals
from tenfold.levers.quality import Estimated, total_ratio
from tenfold.prices.book import PriceBook
from tenfold.prices.naming import model_key
from tenfold.store import steps
from tenfold.store.engines import Engine

# Sums beyond this are rounded to a fraction of so many parts, so that SQL multiplies within 64 bits.
_MOST_PARTS = 10**9
_TRUNCATED = "length"


class Measured(NamedTuple):
    """A ratio of totals from pairs.

    Args:
        ratio: sum(after) / sum(before), exactly.
        sample: The same as an estimate, with its interval and the pairs that it rests on.
    """

    ratio: Fraction
    sample: Estimated

    def ends(self) -> tuple[Fraction, Fraction, Fraction]:
        """Give the ends of its interval around it.

        Returns:
            Smallest, exact, largest; all alike where the sample cannot bound it.
        """
        found = self.sample.as_range()
        if found is None or self.sample.low is None:
            return self.ratio, self.ratio, self.ratio
        return min(Fraction(found.low), self.ratio), self.ratio, max(Fraction(found.high), self.ratio)


class Group(NamedTuple):
    """The pairs of one feature, or those that name none.

    Args:
        feature: The feature; None for the pairs that name none, which stand for every other feature.
        output: Ratio of output tokens; None without a pair that has them.
        input: Ratio of input tokens; likewise.
    """

    feature: str | None
    output: Measured | None
    input: Measured | None


@dataclass(frozen=True, slots=True)
class Pairs:
    """A paired sample.

    Args:
        groups: Its groups, in order of the features.
        rows: Rows of the file.
        unpaired: Rows without a request of the log, or with several.
    """

    groups: tuple[Group, ...]
    rows: int
    unpaired: int

    def of(self, feature: str | None) -> Group | None:
        """Find the group that stands for a feature.

        Args:
            feature: The feature of a request.

        Returns:
            Its own group, else the one of the pairs that name no feature.
        """
        by_feature = {group.feature: group for group in self.groups}
        return by_feature.get(feature, by_feature.get(None))


def pairs(engine: Engine, evals: Evals, book: PriceBook) -> Pairs:
    """Pair the answers of an evals file with the log's own.

    Args:
        engine: Engine with ``lever_log`` in reach.
        evals: The file: rows with ``request_id``, and ``output_tokens`` or ``input_tokens`` of the shorter version.
        book: The price book, for the models' names.

    Returns:
        Ratios by group. A pair of which either answer ended at its limit is left out; requests of one session are one
        cluster of the bootstrap.

    Raises:
        AssumptionError: A row names another model than its request has.

    Source:
        levers.md 6 (iii): paired bootstrap, by session, truncations left out.
    """
    own = evals.frame.filter(evals.frame["request_id"].is_not_null())
    engine.register("evals_pairs", own.select("line", "request_id"))
    found = {row["line"]: row for row in engine.fetch(steps.filled("lever_pairs")).rows(named=True)}
    members: dict[str | None, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for after in own.rows(named=True):
        before = found[after["line"]]
        if before["requests"] == 1:
            _check_model(evals, book, before, after)
            members.setdefault(after["feature"], []).append((before, after))
    groups = tuple(
        Group(feature, _ratio(members[feature], "output_tokens"), _ratio(members[feature], "input_tokens"))
        for feature in sorted(members, key=lambda name: name or "")
    )
    rows = len(evals.frame)
    return Pairs(groups, rows, rows - sum(map(len, members.values())))


def mean_scores(evals: Evals) -> dict[str | None, int]:
    """Average the scores by feature.

    Args:
        evals: The file.

    Returns:
        Feature (None for the rows that name none) to the mean in 1e-12, rounded down.
    """
    sums: dict[str | None, tuple[int, int]] = {}
    for feature, score in evals.frame.select("feature", "score_e12").iter_rows():
        if score is not None:
            total, rows = sums.get(feature, (0, 0))
            sums[feature] = (total + score, rows + 1)
    return {feature: total // rows for feature, (total, rows) in sums.items()}


def score_text(score_e12: int) -> str:
    """Write a score as it would be written.

    Args:
        score_e12: The score in 1e-12.

    Returns:
        Up to four decimals.
    """
    return f"{score_e12 / SCORE_UNITS:.4f}".rstrip("0").rstrip(".")


def _check_model(evals: Evals, book: PriceBook, before: dict[str, Any], after: dict[str, Any]) -> None:
    if after["model"] is None or before["model"] is None:
        return
    provider = before["provider"] or ""
    if model_key(book, provider, after["model"]) != model_key(book, provider, before["model"]):
        raise AssumptionError(
            f'{evals.file}, line {after["line"]}: model "{after["model"]}" is not the one that request '
            f'{after["request_id"]} ran on ("{before["model"]}"). This sample holds shorter answers of the requests\' '
            "own models; put answers of other models into a file of their own"
        )


def _ratio(members: list[tuple[dict[str, Any], dict[str, Any]]], column: str) -> Measured | None:
    known = [(b, a) for b, a in members if b[column] is not None and a[column] is not None]
    cut = [_TRUNCATED in (b["finish_reason"], a["finish_reason"]) for b, a in known]
    sample = total_ratio(
        [b[column] for b, _ in known],
        [a[column] for _, a in known],
        cut,
        [("session", b["session_id"]) if b["session_id"] else ("request", a["request_id"]) for b, a in known],
    )
    if sample.value is None:
        return None
    whole = [(b[column], a[column]) for (b, a), is_cut in zip(known, cut, strict=True) if not is_cut]
    exact = Fraction(sum(after for _, after in whole), sum(before for before, _ in whole))
    return Measured(exact.limit_denominator(_MOST_PARTS), sample)
