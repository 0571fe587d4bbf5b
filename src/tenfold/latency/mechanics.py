"""How the window before served a prompt and wrote an answer: small physical models, fitted to its own requests.

A replica computes in steps. A prompt takes time in proportion to its uncached tokens, more where answers are being
written beside it; a token of an answer takes a step, and a step grows with the answers written in it, with the tokens
that these hold and with the prompts computed beside them (serving.md 3 and 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tenfold.latency.records import Floats, Ints, Mask
from tenfold.latency.under_way import UnderWay

# Requests that a model is fitted to at most, evenly spread: more change nothing that is used.
_FITTED = 200_000
_ROUNDS = 5
# Bins of equal counts in which what the straight lines leave is centred.
_BINS = 24


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """A time as a weighted sum of terms, with what that leaves centred in bins of one of them; in seconds.

    Args:
        weights: Seconds a unit of each term.
        edges: Middle of each bin.
        centre: Median log of measured over the sum in it.
        low: Least that is expected.
    """

    weights: Floats
    edges: Floats
    centre: Floats
    low: float

    @classmethod
    def fit(cls, terms: Floats, by: Floats, measured: Floats) -> Lines:
        """Fit to requests; those with anything unknown, or no time, are left out.

        Args:
            terms: Terms of each request.
            by: What the bins are of.
            measured: Seconds.

        Returns:
            The fit; without any request a constant.
        """
        keep = _sample(np.isfinite(terms).all(axis=1) & np.isfinite(by) & np.isfinite(measured) & (measured > 0))
        if keep.size == 0:
            return cls(np.eye(1, terms.shape[1])[0], np.zeros(1), np.zeros(1), 1e-9)
        weights = _relative_fit(terms[keep], measured[keep])
        low = max(float(np.quantile(measured[keep], 0.001)), 1e-9)
        lines = np.maximum(terms[keep] @ weights, low)
        edges, centre = _centred(by[keep], np.log(measured[keep] / lines))
        return cls(weights, edges, centre, low)

    def at(self, terms: Floats, by: Floats) -> Floats:
        """Give the time that the fit expects.

        Args:
            terms: Terms of each request.
            by: What the bins are of.

        Returns:
            Seconds.
        """
        return np.maximum(terms @ self.weights, self.low) * np.exp(np.interp(by, self.edges, self.centre))


class Prefill(NamedTuple):
    """Time of a prompt without its wait.

    Args:
        lines: Of 1, uncached tokens, their square, answers beside it, and uncached tokens x answers.
    """

    lines: Lines

    @classmethod
    def fit(cls, uncached: Floats, service_s: Floats, beside: Floats) -> Prefill:
        """Fit to requests.

        Args:
            uncached: Uncached prompt tokens.
            service_s: Seconds to the first token without the wait.
            beside: Answers being written on the replica.

        Returns:
            The model.
        """
        return cls(Lines.fit(_prompt_terms(uncached, beside), uncached, service_s))

    def expected(self, uncached: Floats, beside: Floats) -> Floats:
        """Give the seconds that the window before would have taken.

        Args:
            uncached: Uncached prompt tokens.
            beside: Answers being written on the replica.

        Returns:
            Seconds.
        """
        return self.lines.at(_prompt_terms(uncached, beside), uncached)


class Decode(NamedTuple):
    """Time an output token.

    Args:
        lines: Of 1, answers beside it, tokens that these hold, and uncached prompt tokens in a step.
    """

    lines: Lines

    @classmethod
    def fit(cls, tpot_s: Floats, under: UnderWay) -> Decode:
        """Fit to requests.

        Args:
            tpot_s: Seconds an output token.
            under: What else was under way.

        Returns:
            The model.
        """
        return cls(Lines.fit(_answer_terms(under.decoding, under.context, under.between), under.decoding, tpot_s))

    def expected(self, decoding: Floats, context: Floats, between: Floats) -> Floats:
        """Give the seconds that the window before would have taken.

        Args:
            decoding: Answers being written beside it.
            context: Tokens that these hold.
            between: Uncached prompt tokens beside it, an output token.

        Returns:
            Seconds.
        """
        return self.lines.at(_answer_terms(decoding, context, between), decoding)


def _prompt_terms(uncached: Floats, beside: Floats) -> Floats:
    return np.column_stack([np.ones(uncached.size), uncached, uncached * uncached, beside, uncached * beside])


def _answer_terms(decoding: Floats, context: Floats, between: Floats) -> Floats:
    return np.column_stack([np.ones(decoding.size), decoding, context, between])


def _sample(known: Mask) -> Ints:
    rows = np.flatnonzero(known)
    return rows if rows.size <= _FITTED else rows[np.linspace(0, rows.size - 1, _FITTED).astype(np.int64)]


def _relative_fit(terms: Floats, measured: Floats) -> Floats:
    """Fit non-negative weights by relative errors, outliers held down (Huber at 1.5 robust deviations)."""
    scale = np.maximum(np.abs(terms).max(axis=0), 1e-300)
    scaled = terms / scale / measured[:, None]
    weight = np.ones(measured.size)
    found = np.zeros(terms.shape[1])
    for _ in range(_ROUNDS):
        found = _non_negative(scaled * weight[:, None], weight)
        error = scaled @ found - 1
        spread = max(1.4826 * float(np.median(np.abs(error))), 1e-6)
        weight = np.sqrt(np.minimum(1.0, 1.5 * spread / np.maximum(np.abs(error), 1e-12)))
    return found / scale


def _non_negative(terms: Floats, target: Floats) -> Floats:
    """Solve least squares with no weight below 0: terms that come out negative are left out, worst first."""
    used = list(range(terms.shape[1]))
    while True:
        gram = terms[:, used].T @ terms[:, used]
        ridge = 1e-12 * float(np.trace(gram)) * np.eye(len(used))
        solved: Floats = np.linalg.solve(gram + ridge, terms[:, used].T @ target).astype(np.float64)
        if solved.min() >= 0 or len(used) == 1:
            found = np.zeros(terms.shape[1])
            found[used] = np.maximum(solved, 0.0)
            return found
        del used[int(np.argmin(solved))]


def _centred(by: Floats, log_ratio: Floats) -> tuple[Floats, Floats]:
    """Give the median of what is left in bins of equal counts."""
    order = np.argsort(by, kind="stable")
    parts = [part for part in np.array_split(order, _BINS) if part.size]
    return np.array([np.median(by[part]) for part in parts]), np.array([np.median(log_ratio[part]) for part in parts])
