"""How much more work slower serving makes: replicas are taken for longer by each request."""

from __future__ import annotations

import numpy as np

from tenfold.latency.facts import Facts
from tenfold.latency.records import Mask, Pair


def slower_log(pair: Pair, facts: Facts, rows: Mask, prefill: float, decode: float) -> float:
    """Give the log of the time that requests took their replicas over what they would have taken.

    Args:
        pair: The windows.
        facts: What is known of them.
        rows: Requests of the window after that were served slower.
        prefill: Log by which their prompts took longer.
        decode: Log by which their answers took longer.

    Returns:
        The log over all requests of the window after; 0 where no times are known.
    """
    service = np.nan_to_num(facts.after.service_s)
    answer = np.maximum(np.nan_to_num(pair.after.e2e_s - pair.after.ttft_s), 0.0)
    whole = float((service + answer).sum())
    saved = float((service[rows].sum() * -np.expm1(-prefill)) + (answer[rows].sum() * -np.expm1(-decode)))
    return float(np.log(whole / (whole - saved))) if whole > 0 and saved < whole else 0.0
