"""Cost by the value of a tag that requests bear: the customer, the product, the experiment."""

from __future__ import annotations

import polars as pl

from tenfold.ledger import Ledger
from tenfold.ledger.breakdowns import cost_sql
from tenfold.store import steps
from tenfold.store.database import quoted


def by_tag(ledger: Ledger, tag: str) -> pl.DataFrame:
    """Split a bill by a tag.

    Args:
        ledger: The ledger; its window is what is split.
        tag: Name of the tag.

    Returns:
        One row a value: ``value`` (null for requests without the tag), ``requests``, ``unpriced_requests`` and
        ``cost_pusd`` (Decimal), as in ``Composition.frame``; the costs sum to the ledger's ``total_pusd``.
    """
    with ledger.session() as session:
        sql = steps.filled("tag_costs", priced="priced_requests", key=quoted(tag), cost=cost_sql(session))
        return session.engine.fetch(sql)
