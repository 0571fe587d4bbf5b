"""One self-hosted request's rate traced: to its pools, their bill, the busy share and the GPU time of a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.money import usd_text

if TYPE_CHECKING:
    from tenfold.serving.hosted import Hosted

FORMULA = (
    "rate = busy_pusd x gpu_seconds[kind] / sum over kinds of (tokens x gpu_seconds), rounded down to 1 pUSD a token; "
    "busy_pusd = bill x busy share, rounded down"
)


def traced(one: Hosted) -> dict[str, Any]:
    """Say how a model's rates over a stretch of time came to be, so that they can be worked out again.

    Args:
        one: The model on its fleet.

    Returns:
        ``model``, ``from``, ``to``, ``pools[]`` (name, sum, bill_usd), ``bill_usd``, ``busy_usd``, ``busy_pusd``,
        ``busy_ratio``, ``busy_label``, ``busy_replica_seconds``, ``replica_seconds``, ``batch``, ``tokens{}``,
        ``gpu_seconds{}`` (a token, exact floats), ``rates_pusd{}`` (a token), ``pace_ratio`` (measured pace over the
        modelled one; null where nothing is measured), ``labels{}`` and ``formula``.
    """
    demand, kinds = one.demand, one.rates._fields
    tokens = (demand.uncached_tokens, demand.cached_tokens, demand.output_tokens)
    is_measured = one.label == "measured"
    return {
        "model": one.model,
        "from": one.since.isoformat(),
        "to": one.until.isoformat(),
        "pools": [
            {
                "name": pool.name,
                "sum": pool.sum_text(one.since, one.until),
                "bill_usd": usd_text(pool.bill_pusd(one.since, one.until)),
            }
            for pool in one.pools
        ],
        "bill_usd": usd_text(one.bill_pusd),
        "busy_usd": usd_text(one.busy_pusd),
        "busy_pusd": one.busy_pusd,
        "busy_ratio": one.busy_ratio,
        "busy_label": one.label,
        "busy_replica_seconds": demand.busy_s if is_measured else None,
        "replica_seconds": one.hours * 3600 * one.replicas,
        "batch": one.batch,
        "tokens": dict(zip(kinds, tokens, strict=True)),
        "gpu_seconds": one.gpu_s._asdict(),
        "rates_pusd": one.rates._asdict(),
        "pace_ratio": one.modelled_ratio if is_measured else None,
        "labels": {
            "bill": "exact",
            "tokens": "measured",
            "busy_ratio": one.label,
            "batch": one.label,
            "gpu_seconds": "modelled: roofline at this batch; only their proportions matter to the rates",
        },
        "formula": FORMULA,
    }
