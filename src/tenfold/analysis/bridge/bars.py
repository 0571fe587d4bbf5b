"""From two periods to bars: the effects of every segment summed by driver, whole picodollars that foot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from tenfold.analysis.bridge.factors import effects, last_weight
from tenfold.analysis.bridge.periods import Amounts, Group, Period, is_tokens
from tenfold.analysis.bridge.segments import Effects, Segment, decompose

VOLUME, INTENSITY, MIX, WITHIN, PRICE = "volume", "intensity", "mix", "within", "price"
DISCOUNT, NEW, DISCONTINUED, IDLE = "discount", "new", "discontinued", "idle_gpus"
# The dimension of the mix that no column names: uncached input, cache reads, writes, output.
KIND = "kind of token"
_NONE = Fraction(0)
_GRID = 10**9
_NOTHING = Amounts()


class Line(NamedTuple):
    """One kind of unit of one group in both periods, with the prices that its change is split by.

    Args:
        group: Values of the dimensions.
        kind: Kind of unit.
        q0: Units before, scaled.
        q1: Units after.
        p0: Price before; that of the boundary where nothing was used.
        p1: Price after; that of the boundary where nothing is used.
        within: Change of the mean price at the boundary's list: other bands, regions and hours.
        listed: Change of the list price; None where there are no prices of your own.
        left: Change of cost that has no units to be by.
        apart: ``new`` or ``discontinued`` where it is one; else empty.
    """

    group: Group
    kind: str
    q0: Fraction
    q1: Fraction
    p0: Fraction
    p1: Fraction
    within: Fraction
    listed: Fraction | None
    left: Fraction
    apart: str = ""


@dataclass(slots=True)
class Sums:
    """Exact effects by driver.

    Args:
        by_driver: Driver to its effect.
        by_group: Group to its drivers' effects.
        mix: Effect of each dimension of the mix.
        going_on: What tokens that are neither new nor discontinued cost before: what volume and intensity act on.
        counted: Kind of unit that is no token to its units before (scaled) and after, new and discontinued left out.
    """

    by_driver: dict[str, Fraction] = field(default_factory=dict[str, Fraction])
    by_group: dict[Group, dict[str, Fraction]] = field(default_factory=dict[Group, dict[str, Fraction]])
    mix: list[Fraction] = field(default_factory=list[Fraction])
    going_on: Fraction = _NONE
    counted: dict[str, tuple[Fraction, Fraction]] = field(default_factory=dict[str, tuple[Fraction, Fraction]])

    def add(self, driver: str, effect: Fraction, group: Group | None = None) -> None:
        """Add an effect to its driver, and to the driver within its group."""
        self.by_driver[driver] = self.by_driver.get(driver, _NONE) + effect
        if group is not None:
            of_group = self.by_group.setdefault(group, {})
            of_group[driver] = of_group.get(driver, _NONE) + effect


def summed(before: Period, after: Period, *, scale: Fraction, levels: int, method: str) -> Sums:
    """Sum the effects of all segments.

    Args:
        before: The period before.
        after: The period after.
        scale: What quantities and costs of the period before are multiplied with.
        levels: Dimensions of a group.
        method: ``pvm``, ``bennet``, ``lmdi`` or ``shapley``.

    Returns:
        The sums; all drivers together are the change of the requests' cost, exactly.
    """
    sums = Sums(mix=[_NONE] * (levels + 1))
    for driver in (VOLUME, INTENSITY, MIX, PRICE):
        sums.by_driver[driver] = _NONE
    lines = _lines(before, after, scale)
    tokens = [line for line in lines if is_tokens(line.kind)]
    sums.going_on = sum((line.q0 * line.p0 for line in tokens if not line.apart), _NONE)
    base = before.base * scale, Fraction(after.base)
    found = decompose([_segment(line) for line in tokens], base=base, method=method)
    for line, exact in zip(tokens, found, strict=True):
        effect = _on_grid(exact)
        for level, one in enumerate(effect.mix):
            sums.mix[level] += one
        sums.add(VOLUME, effect.volume, line.group)
        sums.add(INTENSITY, effect.intensity, line.group)
        sums.add(MIX, sum(effect.mix, _NONE), line.group)
        _add_price(sums, line, effect)
    for line in lines:
        if is_tokens(line.kind):
            continue
        if line.apart:
            _add_price(sums, line, Effects(new=line.q1 * line.p1, discontinued=-line.q0 * line.p0))
            continue
        factors = ((line.q0, line.q1), (line.p0, line.p1))
        quantity, price = effects(factors, method)
        sums.add(line.kind, _near(quantity), line.group)
        was, now = sums.counted.get(line.kind, (_NONE, _NONE))
        sums.counted[line.kind] = was + line.q0, now + line.q1
        rest = quantity + price - _near(quantity)
        _add_price(sums, line, Effects(price=rest, weight=last_weight(factors, price, method)))
    return sums


def _near(amount: Fraction) -> Fraction:
    """Put an amount on a grid far finer than a pUSD: sums of thousands of fractions would grow without bound."""
    return Fraction(round(amount * _GRID), _GRID)


def _on_grid(effect: Effects) -> Effects:
    """Put a segment's effects on the grid; its change, which is a whole number unless it is scaled, stays exact."""
    rounded = effect._replace(
        volume=_near(effect.volume), intensity=_near(effect.intensity), mix=tuple(map(_near, effect.mix))
    )
    return rounded._replace(price=effect.price + effect.total - rounded.total)


def _add_price(sums: Sums, line: Line, effect: Effects) -> None:
    """Split the effect of a price: within the segment, by the list, by discounts; and what stands apart."""
    within = _near(effect.weight * line.within)
    sums.add(WITHIN, within, line.group)
    price = effect.price - within
    listed = price if line.listed is None else _near(effect.weight * line.listed)
    sums.add(PRICE, listed + (_NONE if line.apart else line.left), line.group)
    sums.add(DISCOUNT, price - listed, line.group)
    sums.add(NEW, effect.new + (line.left if line.apart == NEW else _NONE), line.group)
    sums.add(DISCONTINUED, effect.discontinued + (line.left if line.apart == DISCONTINUED else _NONE), line.group)


def _segment(line: Line) -> Segment:
    # what is new or discontinued is a leaf of its own: some of its group and kind may be neither
    path = (*line.group, (line.kind, line.apart))
    return Segment(
        path,
        line.q0,
        None if line.apart == NEW else line.p0,
        line.q1,
        None if line.apart == DISCONTINUED else line.p1,
    )


def _lines(before: Period, after: Period, scale: Fraction) -> list[Line]:
    has_list = before.is_own or after.is_own
    staying = set(after.by_group())
    made: list[Line] = []
    for group, kind in dict.fromkeys([*before.amounts, *after.amounts]):
        old = before.amounts.get((group, kind), _NOTHING)
        new = after.amounts.get((group, kind), _NOTHING)
        old_at, new_at = _each(old.at, old.units), _each(new.at, new.units)
        # what is used in one period only has the boundary's price in the other
        old_at, new_at = (old_at if old.units else new_at), (new_at if new.units else old_at)
        listed = _each(new.list_own - new.list_at, new.units) + _each(old.list_at - old.list_own, old.units)
        made.append(
            Line(
                group, kind, old.units * scale, Fraction(new.units),
                p0=_each(old.own, old.units) if old.units else old_at,
                p1=_each(new.own, new.units) if new.units else new_at,
                within=new_at - old_at,
                listed=listed if has_list else None,
                left=Fraction(0 if new.units else new.own) - (0 if old.units else old.own) * scale,
                apart="" if group in staying else DISCONTINUED,
            )
        )  # fmt: skip
    made += [_apart(place, one, scale, DISCONTINUED) for place, one in before.unlike.items()]
    made += [_apart(place, one, Fraction(1), NEW) for place, one in after.unlike.items()]
    return made


def _apart(place: tuple[Group, str], one: Amounts, scale: Fraction, what: str) -> Line:
    """Make the line of what has no price at the boundary."""
    units, price = one.units * scale, _each(one.own, one.units)
    left = _NONE if one.units else one.own * scale
    is_new = what == NEW
    return Line(
        *place, _NONE if is_new else units, units if is_new else _NONE, _NONE if is_new else price,
        price if is_new else _NONE, _NONE, None, left if is_new else -left, what,
    )  # fmt: skip


def _each(pusd: int, units: int) -> Fraction:
    return Fraction(pusd, units) if units else _NONE


def drivers(sums: Sums) -> Sequence[str]:
    """Order the drivers for reading; those without an effect are left out, but for the four that a bill always has.

    Args:
        sums: The sums.

    Returns:
        Names of drivers, quantities of what is no token by its kind.
    """
    always = (VOLUME, INTENSITY, MIX, PRICE)
    order = (VOLUME, INTENSITY, MIX, WITHIN)
    last = (PRICE, DISCOUNT, NEW, DISCONTINUED, IDLE)
    kinds = [name for name in sums.by_driver if name not in (*order, *last)]
    # a bar of nothing stands where segments have it with either sign: they would not foot without it
    moved = {name for drivers_of in sums.by_group.values() for name, effect in drivers_of.items() if effect}
    return [name for name in (*order, *kinds, *last) if name in always or sums.by_driver.get(name) or name in moved]
