"""Planted logs: each is made so that its true savings are known, without pricing code and without the oracle.

`LOGS[name](seed)` makes a `Planted`: rows of requests, prices, assumptions, service levels, and the truth in pUSD.
`book()` and `for_plan(planted, folder)` give them to `tf.plan`; a lever's function takes `planted.assume` as it is.
"""

from planted.base import Planted, Pred, book, for_plan
from planted.caches import prefix_sessions, trimmed_prefixes
from planted.duplicates import duplicates
from planted.edits import output_sample, outputs, prompts
from planted.models import cascade, route_by_feature, route_by_request
from planted.nothing import null_log
from planted.overlapping import disjoint, issue_log, same_tokens
from planted.waiting import batches, noisy_batches

# P1 to P10 of the plan of proofs; P3, P6, P7 and P10 have two.
LOGS = {
    "P1 duplicates": duplicates,
    "P2 prefixes": prefix_sessions,
    "P3 route, all scored": route_by_request,
    "P3 route, by feature": route_by_feature,
    "P4 cascade": cascade,
    "P5 batch": batches,
    "P6 prompts": prompts,
    "P6 prompts in prefixes": trimmed_prefixes,
    "P7 outputs": outputs,
    "P7 outputs, sampled": output_sample,
    "P8 nothing": null_log,
    "P9 noise": noisy_batches,
    "P10 disjoint": disjoint,
    "P10 same tokens": same_tokens,
}

__all__ = ["LOGS", "Planted", "Pred", "book", "for_plan", "issue_log"]
