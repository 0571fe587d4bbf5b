"""What a service level forbids: limits for all traffic and by feature, and which requests may wait."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

from tenfold.errors import AssumptionError, near
from tenfold.store.database import quoted


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of some traffic; None where nothing is said, infinity where a limit is lifted.

    Args:
        ttft_p95_ms: Time to first token, 95th percentile, in ms.
        tpot_p95_ms: Time per output token, 95th percentile, in ms.
        deadline_s: Time by which the whole answer is due, in s.
        min_quality: Lowest score that answers may have.
    """

    ttft_p95_ms: float | None = None
    tpot_p95_ms: float | None = None
    deadline_s: float | None = None
    min_quality: float | None = None

    def may_wait(self, delay_s: float) -> bool:
        """Tell whether this traffic may be answered that much later.

        Args:
            delay_s: The delay, in s.

        Returns:
            False where someone waits for a first token, or where the answer is due earlier.
        """
        has_ttft = self.ttft_p95_ms is not None and math.isfinite(self.ttft_p95_ms)
        return not has_ttft and (self.deadline_s is None or self.deadline_s >= delay_s)

    def longest_wait(self, most_s: int) -> int:
        """Tell how much later this traffic may be answered at most.

        Args:
            most_s: The longest that anything waits, in s.

        Returns:
            Whole seconds; 0 where someone waits for a first token.
        """
        if not self.may_wait(0):
            return 0
        return most_s if self.deadline_s is None else int(min(self.deadline_s, most_s))


KEYS = tuple(one.name for one in fields(Limits))
_LINE = re.compile(r"at line (\d+)")
# A value that `tenfold assume` leaves to be filled in.
_BLANK = re.compile(r"=\s*(?:[\[{].*)?\.\.\.")


@dataclass(frozen=True, slots=True)
class Slo:
    """Service levels: the limits for all traffic, and by feature those that differ.

    Args:
        ttft_p95_ms: Time to first token, 95th percentile, in ms.
        tpot_p95_ms: Time per output token, 95th percentile, in ms.
        deadline_s: Time by which the whole answer is due, in s.
        min_quality: Lowest score that answers may have.
        feature: By feature, the keys that differ from the four above.

    Raises:
        AssumptionError: A key is unknown or a value is no number that can be a limit.
    """

    ttft_p95_ms: float | None = None
    tpot_p95_ms: float | None = None
    deadline_s: float | None = None
    min_quality: float | None = None
    feature: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict[str, "Mapping[str, float | None]"])

    def __post_init__(self) -> None:
        _check({key: getattr(self, key) for key in KEYS}, "slo")
        for name, limits in self.feature.items():
            _check(limits, f'slo: feature "{name}"')

    @classmethod
    def load(cls, path: str | Path) -> Slo:
        """Read a service-level file (``slo.toml``).

        Args:
            path: The file: the four keys at top level, ``[feature."NAME"]`` tables for what differs.

        Returns:
            The service levels.

        Raises:
            AssumptionError: The file is missing, is not TOML, or has a key or value that cannot be used.
        """
        raw = read_toml(path)
        features: object = raw.pop("feature", {})
        if not isinstance(features, dict):
            raise AssumptionError(f'{path}: feature must be tables, such as [feature."chat"]')
        _check(raw, str(path), known=(*KEYS, "feature"))
        for name, limits in cast("dict[str, Any]", features).items():
            if not isinstance(limits, dict):
                raise AssumptionError(f'{path}: feature.{name} must be a table: [feature."{name}"]')
            _check(cast("dict[str, Any]", limits), f'{path}: [feature."{name}"]')
        return cls(**raw, feature=cast("dict[str, dict[str, float]]", features))

    def limits(self, feature: str | None = None) -> Limits:
        """Give the limits of a feature.

        Args:
            feature: Its name; None for traffic without one.

        Returns:
            The limits for all traffic, with what the feature overrides.
        """
        common = Limits(self.ttft_p95_ms, self.tpot_p95_ms, self.deadline_s, self.min_quality)
        return replace(common, **self.feature.get(feature, {})) if feature is not None else common

    def may_wait(self, delay_s: float) -> str:
        """Write which requests may be answered that much later, as a SQL condition on ``feature``.

        Args:
            delay_s: The delay, in s.

        Returns:
            A condition that is true or false for every request, also for those without a feature.
        """
        common = self.limits().may_wait(delay_s)
        other = [quoted(name) for name in self.feature if self.limits(name).may_wait(delay_s) != common]
        if not other:
            return str(common).lower()
        then, rest = str(not common).lower(), str(common).lower()
        return f"case when feature in ({', '.join(other)}) then {then} else {rest} end"

    def longest_wait(self, most_s: int) -> str:
        """Write how long each request may be made to wait, as SQL on ``feature``.

        Args:
            most_s: The longest that anything waits, in s.

        Returns:
            SQL of whole seconds, at most ``most_s``; 0 where someone waits for a first token.
        """
        waits = {name: self.limits(name).longest_wait(most_s) for name in (None, *self.feature)}
        cases = "".join(
            f" when feature = {quoted(name)} then {wait}" for name, wait in waits.items() if name is not None
        )
        return f"case{cases} else {waits[None]} end" if cases else str(waits[None])

    def as_dict(self) -> dict[str, Any]:
        """Give the limits as plain values for JSON; a lifted limit is the text ``inf``.

        Returns:
            The four keys, and ``feature`` where there are any.
        """
        made: dict[str, Any] = {key: _plain(getattr(self, key)) for key in KEYS}
        if self.feature:
            made["feature"] = {
                name: {key: _plain(value) for key, value in limits.items()} for name, limits in self.feature.items()
            }
        return made


def read_toml(path: str | Path, *, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Read a TOML file that a user wrote.

    Args:
        path: The file.
        parse_float: What reads a number with a point; ``Decimal`` where it must stay exact.

    Returns:
        Its top-level table.

    Raises:
        AssumptionError: The file is missing, unreadable or not TOML.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"), parse_float=parse_float)
    except OSError as error:
        raise AssumptionError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AssumptionError(f"{path}: not valid TOML: {error}{_to_fill_in(path, str(error))}") from error


def _to_fill_in(path: str | Path, reason: str) -> str:
    """Say so where the line that is no TOML is one that ``tenfold assume`` left to be filled in."""
    place = _LINE.search(reason)
    lines = Path(path).read_bytes().decode("utf-8", "replace").split("\n")
    line = lines[int(place[1]) - 1] if place else ""
    if not _BLANK.search(line):
        return ""
    return f". In `{line.strip()}`, `...` stands for a value to fill in; put # before the line to leave it out"


def _check(limits: Mapping[str, Any], place: str, *, known: tuple[str, ...] = KEYS) -> None:
    for key, value in limits.items():
        if key not in known:
            raise AssumptionError(f'{place}: unknown key "{key}".{near(key, known)}')
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value < 0:
            raise AssumptionError(f"{place}: {key} must be a number of at least 0, or inf to lift it, not {value!r}")
        if key == "min_quality" and not math.isfinite(value):
            raise AssumptionError(f"{place}: min_quality must be finite; 0 lifts it")


def _plain(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value
