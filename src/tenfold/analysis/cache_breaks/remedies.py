"""What to do about each cause of a broken prompt cache, in one sentence, and the breaks by what they cost.

Source: platform.claude.com, prompt caching, "What invalidates the cache"; developers.openai.com, prompt caching, "Best
practices".
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import polars as pl

from tenfold.analysis.cache_breaks.wording import WORDS
from tenfold.display import small_dollars
from tenfold.money import usd_text

_SHORT = {
    "gap": "pause longer than the cache lives",
    "cold_start": "same beginning, but too long ago",
    "model_switch": "another model in between",
    "in_flight": "sent before the cache could be read",
    "missed": "not read although it was there",
    "partly_read": "read in part only",
    "rewritten": "earlier turns left out or summarised",
    "unexplained": "changed or missed, which cannot be told",
    "write_unread": "written, and read by nothing",
    "volatile_head": "nearly every prompt begins anew",
}
_BROKEN = {
    "head": "beginning changed",
    "fixed_depth": "changed at one depth in many sessions",
    "elsewhere": "changed within the prompt",
}
_TO_DO = {
    "cold_start": "Send requests of one beginning close together, or ask for the longer lifetime behind it.",
    "model_switch": "Keep a session on one model: after a switch all of its history is sent anew.",
    "in_flight": "Where many share a beginning, send one first and the others after its first token.",
    "missed": "Send one prompt_cache_key for one beginning, from one workspace; automatic caches promise no hit.",
    "partly_read": "Set a further breakpoint behind the fixed part, at most 20 content blocks after the one before.",
    "rewritten": "Shorten the history rarely and by much: each time what is left is sent anew.",
    "unexplained": "Load the log with its prompts (hashed, not kept) to tell a changed prompt from a miss.",
    "write_unread": "Take the breakpoint out, or set it behind the head that prompts share and send again in time.",
    "volatile_head": "Put tools and fixed text first and what differs (time, names, ids) last, so prompts begin alike.",
}
_NO_TEXT = "Load the log with --keep-text to see what it is."
_REPAIR = {
    "head": f"Put tools and fixed text first and what changes last. {_NO_TEXT}",
    "fixed_depth": f"Move what changes there to the end of the prompt. {_NO_TEXT}",
    "elsewhere": f"Add to the history instead of rewriting it. {_NO_TEXT}",
}
# What cannot be told where columns are empty, by part.
PARTS = {
    "gaps": "pauses",
    "model_switches": "model switches",
    "prefixes": "changed prompts",
    "heads": "beginnings that always differ",
    "misses": "misses",
    "unread_writes": "writes in vain",
    "longer_lifetime": "what a longer lifetime would save",
    "in_flight": "requests sent too early",
    "wording": "what changed in a prompt",
}
# By what the texts show, where they were kept.
_NAMED = {
    "timestamp": "Move the timestamp below the tools and the fixed text, into the latest message.",
    "uuid": "Move the UUID out of the prompt, or into the latest message.",
    "id": "Move the id out of the prompt, or into the latest message.",
    "counter": "Move the number that changes to the end of the prompt.",
    "tools_reordered": "Keep the tools in one order: sort them by name before sending.",
    "tools_changed": "Send the same tools in every turn of a session, and choose among them with tool_choice.",
    "tools_moved": "Send the tools in every turn, also where none may be called (tool_choice).",
    "system_changed": "Keep the system prompt as it is within a session; what changes goes into the latest message.",
    "history_rewritten": "Add to the history instead of rewriting it; shorten it rarely and by much.",
    "last_message_replaced": "Add a message instead of replacing the latest, or set the breakpoint before it.",
    "text_changed": "Put the fixed text first and what changes last.",
}


class Break(NamedTuple):
    """What one cause cost in one feature.

    Args:
        cause: A key of ``CAUSES``.
        place: Where prefixes broke: head, fixed_depth, elsewhere; None for other causes.
        why: What the texts show, a key of ``wording.WORDS``; None where none was kept, or nothing was seen.
        label: replayed, or ceiling.
        feature: Feature; None for traffic without one.
        turns: Requests.
        tokens: What they would have read, or wrote in vain.
        unpriced_turns: Those of them without a price.
        cost_pusd: What it cost; None where none of them has a price.
        text: The cause, for people.
        to_do: One sentence.
    """

    cause: str
    place: str | None
    why: str | None
    label: str
    feature: str | None
    turns: int
    tokens: int
    unpriced_turns: int
    cost_pusd: int | None
    text: str
    to_do: str

    def as_dict(self) -> dict[str, Any]:
        """Give the break as JSON values.

        Returns:
            Its fields; money as ``cost_usd``, a decimal string.
        """
        return {
            **{name: value for name, value in self._asdict().items() if name != "cost_pusd"},
            "cost_usd": usd_text(self.cost_pusd),
        }


def ranked(frame: pl.DataFrame, texts: pl.DataFrame, lifetimes: pl.DataFrame) -> tuple[Break, ...]:
    """Put the breaks in order: the dearest first, ceilings behind all others.

    Args:
        frame: As in ``CacheBreaks``; likewise the others.
        texts: What the kept texts show.
        lifetimes: What the longer lifetime would save.

    Returns:
        One a cause, place and feature, over all models; causes that are only counted are left out.
    """
    named = _seen(texts)
    longer: dict[str | None, int] = defaultdict(int)
    for row in lifetimes.rows(named=True):
        longer[row["feature"]] += int(row["saving_pusd"] or 0)
    priced = pl.col("cost_pusd")
    grouped = (
        frame.filter(pl.col("cause").is_in((*_SHORT, "prefix_broken")))
        .group_by("cause", "place", "label", "feature")
        .agg(pl.col("turns", "tokens", "unpriced_turns").sum(), pl.when(priced.count() > 0).then(priced.sum()))
    )
    found: list[Break] = []
    for row in grouped.rows(named=True):
        cause, place, feature = row["cause"], row["place"], row["feature"]
        why = named.get((cause, place, feature))
        found.append(
            Break(
                cause=cause,
                place=place,
                why=why,
                label=row["label"],
                feature=feature,
                turns=row["turns"],
                tokens=row["tokens"],
                unpriced_turns=row["unpriced_turns"],
                cost_pusd=None if row["cost_pusd"] is None else int(row["cost_pusd"]),
                text=_text(cause, place, why),
                to_do=_gap(feature, longer) if cause == "gap" else _to_do(cause, place, why),
            )
        )
    return tuple(sorted(found, key=_order))


def _order(one: Break) -> tuple[bool, int, str, str, str]:
    return (one.label == "ceiling", -(one.cost_pusd or 0), one.cause, one.place or "", one.feature or "")


def _seen(texts: pl.DataFrame) -> dict[tuple[str, str | None, str | None], str]:
    """Take of each cause, place and feature what explains most of its cost."""
    sums: dict[tuple[str, str | None, str | None], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in texts.rows(named=True):
        if row["why"] in _NAMED:
            sums[row["cause"], row["place"], row["feature"]][row["why"]] += int(row["cost_pusd"] or 0)
    return {key: max(sorted(whys), key=lambda why: whys[why]) for key, whys in sums.items()}


def _text(cause: str, place: str | None, why: str | None) -> str:
    text = _BROKEN[place or "elsewhere"] if cause == "prefix_broken" else _SHORT[cause]
    return f"{text}: {WORDS[why]}" if why else text


def _to_do(cause: str, place: str | None, why: str | None) -> str:
    if why:
        return _NAMED[why]
    return _REPAIR[place or "elsewhere"] if cause == "prefix_broken" else _TO_DO[cause]


def _gap(feature: str | None, longer: dict[str | None, int]) -> str:
    if feature not in longer:
        return "Send the next turn within the lifetime: no longer one is on offer for these models."
    if longer[feature] > 0:
        saved = small_dollars(longer[feature])
        return f"Ask for the longer lifetime: net of its dearer writes it would have saved {saved}."
    return (
        "Keep the lifetime: the longer one would cost more than it saves here. Read the prefix in time where it pays."
    )
