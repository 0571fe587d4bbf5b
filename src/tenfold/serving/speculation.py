"""Speculative decoding: a draft proposes tokens, the model checks them all in one step.

Free while a step waits for memory anyway; beyond the batch at which multiplying takes longer, each checked token costs
as much as a produced one, and most of them are thrown away. Source: serving.md 10.
"""

from __future__ import annotations

from typing import NamedTuple

from tenfold.errors import ServingError
from tenfold.serving.memory import Deployment
from tenfold.serving.roofline import StepCost, decode_s, touched_share


class Speculation(NamedTuple):
    """How tokens are drafted.

    Args:
        acceptance: Probability that a drafted token is kept, given that those before it were.
        tokens: Drafted tokens a step (k).
        draft_cost_ratio: Time to draft one token, as a share of a step of the model without speculation.
    """

    acceptance: float
    tokens: int
    draft_cost_ratio: float

    @property
    def expected_tokens(self) -> float:
        """Tokens that a step yields on average.

        Formula:
            (1 - a^(k+1)) / (1 - a) for acceptance a and k drafted tokens. (serving.md 10; Leviathan et al. 2023, eq. 1)
        """
        if self.acceptance >= 1:
            return self.tokens + 1.0
        return (1 - self.acceptance ** (self.tokens + 1)) / (1 - self.acceptance)


def checked(acceptance: float, tokens: int, draft_cost_ratio: float) -> Speculation:
    """Make a speculation of figures that can be.

    Args:
        acceptance: Share from 0 to 1.
        tokens: Drafted tokens a step, at least 1.
        draft_cost_ratio: At least 0.

    Returns:
        The speculation.

    Raises:
        ServingError: A figure is outside its bounds.
    """
    if not 0 <= acceptance <= 1 or tokens < 1 or draft_cost_ratio < 0:
        raise ServingError(
            f"speculation: acceptance {acceptance:g} must lie between 0 and 1, drafted tokens {tokens} be at least 1, "
            f"draft cost ratio {draft_cost_ratio:g} at least 0"
        )
    return Speculation(acceptance, tokens, draft_cost_ratio)


def acceptance_of(length: float, tokens: int) -> float:
    """Find the acceptance behind the tokens that engines report a step to yield.

    Args:
        length: Mean tokens a step: 1 + accepted tokens / drafts by vLLM's counters, SGLang's ``spec_accept_length``.
        tokens: Drafted tokens a step.

    Returns:
        The acceptance that ``Speculation.expected_tokens`` gives this length for.

    Raises:
        ServingError: No acceptance gives it.
    """
    if not 1 <= length <= tokens + 1:
        raise ServingError(f"{tokens} drafted tokens yield 1 to {tokens + 1} tokens a step, not {length:g}")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        is_less = Speculation(middle, tokens, 0.0).expected_tokens < length
        low, high = (middle, high) if is_less else (low, middle)
    return high


def step_s(one: Deployment, cost: StepCost, sequences: float, tokens: float, how: Speculation | None = None) -> float:
    """Give the seconds of a decoding step, and with speculation of a step that drafts and checks.

    Args:
        one: The replica.
        cost: What a step costs.
        sequences: Sequences that are decoded.
        tokens: Mean tokens that each has in memory.
        how: How tokens are drafted; None for none.

    Returns:
        Seconds; a step with speculation yields ``how.expected_tokens`` tokens a sequence.

    Formula:
        serving.md 3 and 10: max(reads, 2 P B (k+1)) + overheads + k x draft share x a plain step. Each checked token
        reads the same KV, attends to it, is sampled, and is exchanged between GPUs.
    """
    if how is None:
        return decode_s(one, cost, sequences, tokens)
    checks = how.tokens + 1
    read = cost.weights_s * touched_share(one, sequences * checks) + cost.kv_byte_s * one.kv_bytes(tokens) * sequences
    work = (cost.token_s + cost.pair_s * tokens) * sequences * checks
    # scheduling and sampling are by token that is looked at, and so is what GPUs exchange
    took = max(read, work) + cost.overhead_s + (cost.sequence_s + cost.link_token_s) * checks * sequences
    return took + how.tokens * how.draft_cost_ratio * decode_s(one, cost, sequences, tokens)


def speedup(one: Deployment, cost: StepCost, sequences: float, tokens: float, how: Speculation) -> float:
    """Give how much faster tokens come with speculation than without.

    Args:
        one: The replica.
        cost: What a step costs.
        sequences: Sequences that are decoded.
        tokens: Mean tokens that each has in memory.
        how: How tokens are drafted.

    Returns:
        Ratio; below 1 speculation slows down, and costs more.
    """
    plain = step_s(one, cost, sequences, tokens)
    return how.expected_tokens * plain / step_s(one, cost, sequences, tokens, how)


def break_even_batch(one: Deployment, cost: StepCost, tokens: float, how: Speculation, most: int = 4096) -> int | None:
    """Find the largest batch at which speculation still is faster.

    Args:
        one: The replica.
        cost: What a step costs.
        tokens: Mean tokens that each sequence has in memory.
        how: How tokens are drafted.
        most: Largest batch to look at.

    Returns:
        The batch; 0 where it never is, None where it still is at ``most``.
    """
    if speedup(one, cost, most, tokens, how) > 1:
        return None
    # one by one: a mixture of experts is slower at the smallest batches too, where drafted tokens touch more experts
    return next((batch for batch in range(most, 0, -1) if speedup(one, cost, batch, tokens, how) > 1), 0)
