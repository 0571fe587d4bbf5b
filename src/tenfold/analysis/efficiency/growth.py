"""Growth of the context: how the input grows with the turn of a session."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple


class Turn(NamedTuple):
    """One turn of sessions, or a range of turns.

    Args:
        first: Number of the first turn, from 1.
        last: Number of the last; None for an open range.
        requests: Requests that are such a turn.
        input_tokens: Their input.
        first_tokens: Input of the first turns of their sessions, once for each of the requests.
    """

    first: int
    last: int | None
    requests: int
    input_tokens: int
    first_tokens: int

    @property
    def name(self) -> str:
        """Its number, or its range."""
        if self.last is None:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    @property
    def mean_tokens(self) -> Fraction:
        """Input tokens of a request."""
        return Fraction(self.input_tokens, self.requests)

    @property
    def ratio(self) -> Fraction | None:
        """Its input over that of its own sessions' first turns, so that longer sessions do not count as growth."""
        return Fraction(self.input_tokens, self.first_tokens) if self.first_tokens else None


class Growth(NamedTuple):
    """How the context grows within sessions; a session begins with its first request in the window.

    Args:
        turns: Turns 1 to 10, then ranges, as far as there are any.
        sessions: Sessions of more than one turn.
        grown: Those whose last input is larger than their first.
        last_tokens: Input of their last turns.
        first_tokens: Input of their first turns.
        median: The middle session's last input over its first; None without such a session.
    """

    turns: tuple[Turn, ...]
    sessions: int
    grown: int
    last_tokens: int
    first_tokens: int
    median: Fraction | None

    @property
    def ratio(self) -> Fraction | None:
        """Last over first turns, all sessions together."""
        return Fraction(self.last_tokens, self.first_tokens) if self.first_tokens else None

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold kpis --json``.

        Returns:
            ``sessions``, ``grown``, ``last_first_ratio``, ``median_ratio`` and ``turns[]``.
        """
        return {
            "sessions": self.sessions,
            "grown": self.grown,
            "last_first_ratio": None if self.ratio is None else float(self.ratio),
            "median_ratio": None if self.median is None else float(self.median),
            "turns": [
                {
                    "turn": one.name,
                    "requests": one.requests,
                    "mean_input_tokens": float(one.mean_tokens),
                    "ratio": None if one.ratio is None else float(one.ratio),
                }
                for one in self.turns
            ],
        }
