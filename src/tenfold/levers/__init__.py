"""The levers: each a function from a bill to a bill, one module and one line here."""

from tenfold.levers import (
    batch_api,
    continuous_batching,
    distill,
    prefix_cache,
    procure,
    quantize,
    route,
    skip,
    speculate,
    trim,
)
from tenfold.levers.base import Assumed, Assumption, Bill, Judged, Lever, Look, Stage
from tenfold.levers.estimate import Estimate, Saving

LEVERS: tuple[Lever, ...] = (
    skip.LEVER,
    route.LEVER,
    prefix_cache.LEVER,
    quantize.LEVER,
    continuous_batching.LEVER,
    trim.LEVER,
    distill.LEVER,
    batch_api.LEVER,
    procure.LEVER,
    speculate.LEVER,
)

__all__ = ["LEVERS", "Assumed", "Assumption", "Bill", "Estimate", "Judged", "Lever", "Look", "Saving", "Stage"]
