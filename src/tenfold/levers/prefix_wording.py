"""What the prefix_cache lever says to people: why it has no figure, what to do first, how to verify and to undo it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.analysis.cache_breaks.remedies import Break
from tenfold.display import counted as number_of
from tenfold.display import saved_or_lost, small_dollars
from tenfold.ledger import Session
from tenfold.levers.base import Advice, Assumed
from tenfold.levers.tally import MOVED, Tally, name_of
from tenfold.replay.rules import rule_frame

NO_TABLE = (
    'no assumption yet: add [prefix_cache] with policy = "none" to the assumptions file to see what caching is worth'
)
LOG_IT = Advice(
    "Log the provider's cached and written token counts with every request.",
    "Load a day of them and run this again: it then says what caching saved or lost.",
    "Nothing to undo.",
)
HASH_IT = Advice(
    "Load the logs with their prompts (text is hashed, not kept), or with a session_id on every request.",
    "Load a day of them and run this again: the replay then says how far it agrees with what was billed.",
    "Nothing to undo.",
)
FIND_OUT = Advice(
    "Find out what the replay cannot see: `tenfold levers --breaks` names what keeps prompts from being read; log org "
    "and project (caches are kept apart by them), and one session_id for each conversation.",
    "Run this again: dollars are shown once the replay is within a tenth of what was billed.",
    "Nothing to undo.",
)
STATE_IT = Advice(
    "State system_tokens in [prefix_cache]: how many tokens the fixed head of the prompt has (instructions, tools).",
    "Run this again: the replay then says what a breakpoint at the end of that head saves.",
    "Nothing to undo.",
)
_NOTHING = Advice(
    "Nothing to do first: no request can be served from a cache.", "Nothing to verify.", "Nothing to undo."
)
# What the lever settles with itself: traffic that reads less than it should, and by how much.
UNREAD = "unread"
# How a breakpoint, and the longer lifetime, are asked for in a request; platform.claude.com and developers.openai.com,
# prompt caching; docs.aws.amazon.com, Bedrock prompt caching.
_MARKS = {"anthropic": "cache_control", "vertex": "cache_control", "azure": "cache_control", "bedrock": "cachePoint"}
_LONG = {"anthropic": 'ttl "1h"', "openai": 'prompt_cache_retention "24h"'}


def disagreement(predicted_tokens: int, billed_tokens: int) -> str:
    """Say why dollars are withheld.

    Args:
        predicted_tokens: Reads that a replay of the log as it was shipped finds.
        billed_tokens: Reads that were billed.

    Returns:
        One sentence with both.
    """
    return (
        f"a replay of the log as it was shipped finds {predicted_tokens:,} cached tokens where "
        f"{billed_tokens:,} were billed: beyond a tenth apart, so dollars of another policy are withheld"
    )


def with_past(reason: str, as_billed_pusd: int | None) -> str:
    """Add to why a replay has no figure that what was billed still has one.

    Args:
        reason: Why.
        as_billed_pusd: What caching saved (positive) or lost so far; None where the log does not say.

    Returns:
        The reason, with the policy that has a figure where there is one.
    """
    if as_billed_pusd is None:
        return reason
    return f'{reason}; policy = "none" still has a figure: caching {saved_or_lost(as_billed_pusd)} so far, as billed'


def unread(found: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """Say how far the replay of the log as it was shipped is from what was billed.

    Args:
        found: Name of the traffic to the tokens that it should have read, and those that it read.

    Returns:
        Name to text.
    """
    return {name: f"should have read {should:,} tokens and read {did:,}" for name, (should, did) in found.items()}


def as_billed(counted: Tally, as_billed_pusd: int, policy: object) -> Advice:
    """Say what to do about the cache as it is.

    Args:
        counted: The log without caching, counted.
        as_billed_pusd: What caching saved (positive) or lost.
        policy: The policy that was assumed.

    Returns:
        One sentence each.
    """
    saved_without = counted.by_saving()
    if saved_without and saved_without[0][2] > 0:
        name, requests, lost = saved_without[0]
        gist = f"{requests:,} requests lost {small_dollars(lost)}"
        first = f"Stop writing to the cache, or repair the prompt's head, in {name}: {gist}."
    elif not counted.requests(MOVED):
        first = "Nothing to change: no request here reads or writes a prompt cache."
    elif policy == "none":
        first = f"Keep the cache on: it {saved_or_lost(as_billed_pusd)} against the same tokens without it."
    else:
        first = f"Nothing to change yet: caching {saved_or_lost(as_billed_pusd)} in this log."
    return Advice(
        first,
        "Compare what caching saved in the next full week with this one, feature by feature.",
        "Put the cache markers back as they were; the next request writes the cache again.",
    )


def replayed(session: Session, counted: Tally, assumed: Assumed) -> Advice:
    """Say where to set the cache breakpoint, and where not to.

    Args:
        session: The priced session.
        counted: What the policy did on its own, counted.
        assumed: The assumptions.

    Returns:
        One sentence each, of the feature that gains most; a second where another would lose.
    """
    moved = counted.by_saving()
    if not moved:
        return _NOTHING
    name, requests, saving = moved[0]
    loser, _, loss = moved[-1]
    if saving <= 0:
        more = "costs the same" if not loss else f"costs {small_dollars(-loss)} more in {loser}"
        return Advice(
            f"Leave caching as it is: this policy {more}, as what it writes is read too seldom.",
            "Nothing to verify.",
            "Nothing to undo.",
        )
    rows = [row for row in counted.frame.filter(fate=MOVED).rows(named=True) if name_of(row) == name]
    reads, writes = (sum(row[f"kept_{one}_tokens"] for row in rows) for one in ("read", "write"))
    written = f" and writes {writes:,}" if writes else ""
    gist = f"{number_of(requests, 'request')} then read {reads:,} tokens{written}, net {small_dollars(saving)}"
    gist = gist.replace("writes", "write")
    undo = f"Take the setting out of {name} again; entries expire by themselves."
    hidden = assumed.values.get(UNREAD)
    if isinstance(hidden, Mapping) and name in hidden:
        first = f"Find what breaks the cache in {name} before you set anything (`tenfold levers --breaks`): by its own "
        first += f"breakpoints it {hidden[name]}. Repaired, {gist}."
        undo = f"Nothing to undo: {name} only keeps the beginning of its prompts the same."
    else:
        first = f"{_how(session, rows, assumed)} in {name}: {gist}."
    if loss < 0:
        first += f" Leave {loser} as it is: writing would cost {small_dollars(-loss)} more than it saves there."
    verify = (
        f"Hold back one session in twenty of {name} for two weeks: compare read and written tokens and cost a request."
    )
    return Advice(first, verify, undo)


def with_break(advice: Advice, dearest: Break) -> Advice:
    """Name the dearest break of the cache as billed in what to do first.

    Args:
        advice: The advice without it.
        dearest: The break.

    Returns:
        The advice with it.
    """
    where = f"`{dearest.feature}`" if dearest.feature else "requests without a feature"
    lost = f"{number_of(dearest.turns, 'turn')}, {small_dollars(dearest.cost_pusd or 0)} lost"
    named = f"Dearest cache break so far: {dearest.text} in {where} ({lost}). {dearest.to_do}"
    return advice._replace(first_action=f"{advice.first_action} {named}")


def _how(session: Session, rows: Sequence[Mapping[str, Any]], assumed: Assumed) -> str:
    """Say what to set, in the words of the provider of the largest part."""
    dearest = max(rows, key=lambda row: int(row["now_pusd"]))["model"]
    terms = next(row for row in rule_frame(session).rows(named=True) if row["model"] == dearest)
    provider, is_automatic = terms["provider"], terms["control"] == "automatic"
    long = ""
    if assumed.values["lifetime"] == "long" and terms["long_lifetime_us"] is not None:
        asked = f" ({_LONG[provider]})" if provider in _LONG and (is_automatic or provider != "openai") else ""
        long = f"the longer lifetime{asked}"
    if is_automatic:
        # nothing is marked there: what can be done is to keep the beginning as it was, and to ask for more time
        same = "Keep the prompt's beginning the same, byte for byte,"
        return f"Ask for {long}, and keep the prompt's beginning the same," if long else same
    at = "the whole prompt" if assumed.values["policy"] == "history" else "the fixed head"
    mark = f" ({_MARKS[provider]})" if provider in _MARKS else ""
    return f"Set a cache breakpoint{mark} at the end of {at}{f', with {long},' if long else ''}"
