"""Fixed charges: what a bill holds beside its requests, such as the time in which GPUs wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Charge(NamedTuple):
    """An amount that hangs on no request.

    Args:
        name: What is charged for, such as a pool of GPUs.
        what: Kind of charge, such as ``idle``.
        pusd: Amount over the ledger's window, in pUSD.
        provider: Who bills it.
        model: The model it belongs to.
    """

    name: str
    what: str
    pusd: int
    provider: str = ""
    model: str = ""

    @property
    def mark(self) -> str:
        """What stands in a column that it has no value for."""
        return f"({self.what})"


def charge_rows(charges: Iterable[Charge], by: Sequence[str]) -> list[tuple[tuple[str, ...], Charge]]:
    """Group charges as requests are grouped.

    Args:
        charges: The charges.
        by: The dimensions.

    Returns:
        The group's values (those of ``provider`` and ``model``, elsewhere the kind of charge in brackets) and what is
        charged in it; groups in the order of the charges.
    """
    groups: dict[tuple[tuple[str, ...], str], Charge] = {}
    for one in charges:
        own = {"provider": one.provider, "model": one.model}
        values = tuple(own.get(name) or one.mark for name in by)
        known = groups.get((values, one.what))
        groups[values, one.what] = one if known is None else known._replace(pusd=known.pusd + one.pusd)
    return [(values, one) for (values, _), one in groups.items()]
