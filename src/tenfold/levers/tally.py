"""What a lever did on its own, counted: requests and money by fate, feature and model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from tenfold.display import counted, small_dollars
from tenfold.money import usd_text

MOVED = "moved"


class Tally(NamedTuple):
    """What a lever did to the requests in its ``where``, counted.

    Args:
        frame: One row per (fate, feature, model): requests, cached reads and writes as
            logged, reads and writes after the change, cost before and after in pUSD.
        versions: Table of the versions of the requests that it counts.
        bit: Which of them the lever made: ``levers`` equals it.
    """

    frame: pl.DataFrame
    versions: str
    bit: int

    def requests(self, *fates: str) -> int:
        """Count requests.

        Args:
            *fates: Which fates; all without any.

        Returns:
            The number.
        """
        return self.total("requests", *fates)

    def total(self, column: str, *fates: str) -> int:
        """Sum a column exactly.

        Args:
            column: A counted column.
            *fates: Over which fates; all without any.

        Returns:
            The sum; NULL counts as 0.
        """
        rows = self.frame.filter(pl.col("fate").is_in(fates)) if fates else self.frame
        return sum(int(value) for value in rows[column] if value is not None)

    def fates(self, words: Mapping[str, str], step: str) -> list[dict[str, Any]]:
        """Write the requests that were left as they are as evidence, by reason.

        Args:
            words: Fate to what it means.
            step: SQL step that decided it.

        Returns:
            One fact per fate that occurs.
        """
        return [fact(name, self.requests(name), text, step) for name, text in words.items() if self.requests(name)]

    def left_out(self, fate: str, why: str) -> tuple[dict[str, Any], ...]:
        """List requests of a fate by feature, as traffic that a lever may not touch.

        Args:
            fate: Which.
            why: Why, for people.

        Returns:
            JSON objects, dearest first: ``why`` (the fate), ``feature``, ``requests``, ``cost_usd`` and ``text``.
        """
        sums: dict[str | None, tuple[int, int]] = {}
        for row in self.frame.filter(fate=fate).rows(named=True):
            requests, pusd = sums.get(row["feature"], (0, 0))
            sums[row["feature"]] = (requests + row["requests"], pusd + int(row["now_pusd"]))
        return tuple(
            {
                "why": fate,
                "feature": feature,
                "requests": requests,
                "cost_usd": usd_text(pusd),
                "text": ", ".join(
                    (f"{why}: {feature or 'without a feature'}", counted(requests, "request"), small_dollars(pusd))
                ),
            }
            for feature, (requests, pusd) in sorted(sums.items(), key=lambda one: (-one[1][1], one[0] or ""))
        )

    def by_saving(self) -> list[tuple[str, int, int]]:
        """List what was moved by feature (by model, for traffic without one).

        Returns:
            (Name as code, requests, saving in pUSD), the largest saving first, the largest loss last.
        """
        sums: dict[str, tuple[int, int]] = {}
        for row in self.frame.filter(fate=MOVED).rows(named=True):
            name = name_of(row)
            requests, saved = sums.get(name, (0, 0))
            sums[name] = (requests + row["requests"], saved + int(row["now_pusd"]) - int(row["then_pusd"]))
        return sorted(((name, *found) for name, found in sums.items()), key=lambda row: (-row[2], row[0]))


def name_of(row: Mapping[str, Any]) -> str:
    """Name the traffic of a counted row for people: its feature, or its model where it has none.

    Args:
        row: A row of a tally's frame.

    Returns:
        The name as code.
    """
    return f"`{row['feature']}`" if row["feature"] else f"model `{row['model']}`"


def fact(name: str, value: int | str | None, unit: str, step: str) -> dict[str, Any]:
    """Write one piece of evidence.

    Args:
        name: What was measured.
        value: The value; money as a decimal string.
        unit: Its unit.
        step: SQL step that gave it.

    Returns:
        The JSON object.
    """
    return {"name": name, "value": value, "unit": unit, "step": step}
