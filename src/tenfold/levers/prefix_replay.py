"""Replaying a provider's prompt cache over versions of the requests: who reads what, who writes what, by its rules.

Source:
    The design, section 6a (``prefix_cache``); ``pricing/caching.toml`` for each provider's rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from tenfold.ledger import Session
from tenfold.levers.base import Assumed, Bill, Judged
from tenfold.levers.cutting import blocks_left
from tenfold.levers.tally import name_of
from tenfold.replay.prefix import prefix_reads, prefix_touches, session_reads
from tenfold.replay.rules import rule_frame
from tenfold.store import steps
from tenfold.store.cells import CACHED_MEDIA

PROMPTS = "lever_prefix_prompts"
JUDGED = "lever_prefix_cache_hashed"
# Requests that may share a prefix, whatever is done to them: those that begin alike, or are of one session.
GROUP = "prefix_group"
CHANGED = ("cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens", *CACHED_MEDIA)
# The pessimistic scenario: entries live four fifths as long, and become readable five seconds later (levers.md 4.3).
_LIFETIME = {"low": "{0} * 4 / 5", "mid": "{0}", "high": "{0}"}
_DELAY_US = {"low": 5_000_000, "mid": 0, "high": 0}
_WHOLE = "kept", "input_tokens"
_CACHED = "cast(({0} - {0} % prefix_block_tokens) / prefix_block_tokens as bigint)"


class Policy(NamedTuple):
    """What is cached, for how long.

    Args:
        name: ``system`` or ``history``; ``as_shipped`` for what the log shows.
        lifetime: ``default`` or ``long``.
        system_tokens: Length of the fixed head, in tokens, for ``system``.
    """

    name: str
    lifetime: str
    system_tokens: int = 0

    def reach(self, *, by_session: bool) -> tuple[str, str]:
        """Write how far a request's breakpoint reaches.

        Args:
            by_session: Whether there are no blocks, only turns of sessions.

        Returns:
            SQL of blocks and of tokens, over the columns of ``lever_prefix_reached.sql``.
        """
        if self.name == "history":
            return ("0", "input_tokens") if by_session else _WHOLE
        if self.name == "system":
            head = f"least({self.system_tokens}, input_tokens)"
            if by_session:
                return "0", head
            blocks = f"least(kept, {_CACHED.format(self.system_tokens)})"
            return blocks, f"least({blocks} * prefix_block_tokens, input_tokens)"
        if by_session:
            return "0", "case when control = 'automatic' then input_tokens else cached_tokens end"
        blocks = f"case when control = 'automatic' then kept else least(kept, {_CACHED.format('cached_tokens')}) end"
        tokens = f"case when control = 'automatic' then input_tokens else ({blocks}) * prefix_block_tokens end"
        return blocks, tokens


@dataclass(frozen=True, slots=True)
class Replayed:
    """The change that a policy makes: prompt caches replayed, in every world by itself.

    Args:
        policy: The policy.
        by_session: Whether prompts are told by turns of sessions, where the log has no prefix hashes.
    """

    policy: Policy
    by_session: bool
    changed: tuple[str, ...] = CHANGED

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Replay, and bill what was found.

        Args:
            bill: Versions of requests.
            assumed: The assumptions; their scenario bounds what cannot be known.

        Returns:
            The bill after.
        """
        name = f"{bill.requests}_served"
        self.read(bill, assumed, name)
        is_long = self.policy.lifetime == "long"
        media = [column for column in CACHED_MEDIA if column in bill.columns]
        none = "case when is_served then cast(0 as bigint) else {0} end as new_{0}"
        steps.run(
            bill.session.engine,
            "lever_prefix_replayed",
            name=name,
            requests=bill.requests,
            read=f"{name}_read",
            written_long="written_tokens" if is_long else "cast(0 as bigint)",
            media="".join(f",\n  {none.format(column)}" for column in media),
        )
        return replace(bill, requests=name)

    def read(self, bill: Bill, assumed: Assumed, name: str) -> None:
        """Replay.

        Args:
            bill: Versions of requests.
            assumed: The assumptions.
            name: ``<name>_read`` is the table that it makes: ``rid`` (the call), ``combo``, ``read_tokens``.
        """
        session = bill.session
        rules(session, f"{name}_rules")
        blocks, tokens = self.policy.reach(by_session=self.by_session)
        dropped, kept = blocks_left(bill.columns, "v", "p.prefix_blocks", "p.prefix_block_tokens")
        length = "r.lifetime_high_us" if assumed.scenario == "high" else "r.lifetime_us"
        if self.policy.lifetime == "long":
            length = "coalesce(r.long_lifetime_us, r.lifetime_us)"
        steps.run(
            session.engine,
            "lever_prefix_reached",
            name=f"{name}_reached",
            materialised=True,
            requests=bill.requests,
            judged=JUDGED,
            rules=f"{name}_rules",
            delay_us=str(_DELAY_US[assumed.scenario]),
            lifetime=f"cast({_LIFETIME[assumed.scenario].format(length)} as bigint)",
            dropped="0" if self.by_session else dropped,
            kept="0" if self.by_session else kept,
            blocks=blocks,
            tokens=tokens,
        )
        if self.by_session:
            session_reads(session.engine, f"{name}_reached", f"{name}_found")
            reads, found = f"{name}_found", "w.read_tokens"
        else:
            reads = _block_reads(session, name)
            found = "least(cast(w.read_blocks as bigint) * g.prefix_block_tokens, g.reaches_tokens)"
        steps.run(
            session.engine,
            "lever_prefix_read",
            name=f"{name}_read",
            materialised=True,
            reached=f"{name}_reached",
            reads=reads,
            found=found,
        )


def _block_reads(session: Session, name: str) -> str:
    """Replay blocks, unless the same was replayed before: scenarios and policies often differ in times alone."""
    engine, reached, touches = session.engine, f"{name}_reached", ""
    content = ("prefix_replay", *engine.fetch(steps.filled("lever_prefix_content", reached=reached)).row(0))
    for key, made in session.made.items():
        if key[:-1] != content:
            continue
        sql = steps.filled("lever_prefix_alike", reached=reached, earlier=f"{key[-1]}_reached")
        requests, same_blocks, same = engine.fetch(sql).row(0)
        if same == requests:
            return f"{key[-1]}_found"
        touches = made if same_blocks == requests else touches
    if not touches:
        prefix_touches(engine, reached, name)
    prefix_reads(engine, reached, f"{name}_found", touches=touches or name)
    session.made[*content, name] = touches or name
    return f"{name}_found"


def rules(session: Session, name: str) -> None:
    """Register the cache rules of a session's price keys, and whether the card has a rate for writes.

    Args:
        session: The priced session.
        name: Table to make.
    """
    rates = session.card.frame.group_by("price_key").agg(has_write=pl.col("rate_cache_write").is_not_null().any())
    frame = rule_frame(session).join(rates, on="price_key", how="left")
    session.engine.register(name, frame.with_columns(pl.col("has_write").fill_null(value=False)))


def prompts(session: Session) -> None:
    """Lay the view of prompts that every replay reads."""
    steps.run(session.engine, PROMPTS, row_id=session.engine.row_id)


def is_by_session(session: Session) -> bool:
    """Tell whether the requests in its ``where`` must be replayed by turns of sessions: none of them has hashes.

    Args:
        session: The priced session.

    Returns:
        Whether there are sessions, and no hashes.
    """
    hashed, in_sessions = session.engine.fetch(
        "select count(case when p.prefix_blocks > 0 then 1 end) as hashed, count(p.session_id) as in_sessions "
        f"from lever_base as b join {PROMPTS} as p on b.rid = p.rid where b.is_billed and b.in_prefix_cache"
    ).row(0)
    return not hashed and in_sessions > 0


def judge(session: Session, *, by_session: bool) -> Judged:
    """Decide which requests a replay can serve.

    Args:
        session: The priced session.
        by_session: Whether prompts are told by turns of sessions.

    Returns:
        What it judged.
    """
    rules(session, "lever_prefix_rules")
    steps.run(
        session.engine,
        JUDGED,
        materialised=True,
        prompts=PROMPTS,
        rules="lever_prefix_rules",
        unknown="p.session_id is null" if by_session else "p.prefix_blocks = 0",
        group="p.session_id" if by_session else "head.hash",
    )
    return Judged(JUDGED, knobs=(GROUP,), group=GROUP, is_ranged=True)


class Agreement(NamedTuple):
    """The replay of what was shipped against what was billed.

    Args:
        predicted_tokens: Reads that the replay finds.
        billed_tokens: Reads that were billed.
        is_billed: Whether anything was read or written at all.
        by_name: The first two by feature (by model, for traffic without one), where caches were used.
    """

    predicted_tokens: int
    billed_tokens: int
    is_billed: bool
    by_name: Mapping[str, tuple[int, int]]

    @property
    def holds(self) -> bool:
        """Whether the two are within a tenth of each other, or nothing was billed to hold it against."""
        if not self.is_billed:
            return True
        return 9 * self.billed_tokens <= 10 * self.predicted_tokens <= 11 * self.billed_tokens

    @property
    def unread(self) -> dict[str, tuple[int, int]]:
        """Traffic that read less than its own breakpoints should have, by more than a tenth: the log hides a reason."""
        return {name: sums for name, sums in self.by_name.items() if 10 * sums[0] > 11 * sums[1]}


def agreement(bill: Bill, judged: Judged, assumed: Assumed, *, by_session: bool) -> Agreement:
    """Replay the log as it was shipped, and hold it against what was billed.

    Args:
        bill: The log's own bill.
        judged: The requests that a replay can serve.
        assumed: The assumptions.
        by_session: Whether prompts are told by turns of sessions.

    Returns:
        Both sums over those requests.
    """
    engine = bill.session.engine
    columns = "b.rid, b.call_id, b.ts, b.price_key, b.input_tokens, b.cache_read_tokens, b.cache_write_tokens"
    engine.step(
        "lever_prefix_shipped",
        f"select {columns}, cast(null as bigint) as set_pusd, 0 as combo from lever_base as b "
        f"join {judged.view} as j on b.rid = j.rid where j.fate = 'touched'",
    )
    shipped = Bill(bill.session, "lever_prefix_shipped", ())
    Replayed(Policy("as_shipped", "default"), by_session).read(shipped, assumed.at("mid"), "lever_prefix_shipped")
    sums = {
        "predicted": "r.read_tokens",
        "reads": "s.cache_read_tokens",
        "writes": "s.cache_write_tokens",
    }
    columns = ", ".join(f"cast(coalesce(sum({column}), 0) as bigint) as {name}" for name, column in sums.items())
    found = engine.fetch(
        f"select b.feature, b.model, {columns} from lever_prefix_shipped as s join lever_base as b on s.rid = b.rid "
        "left join lever_prefix_shipped_read as r on s.call_id = r.rid group by b.feature, b.model "
        "order by all nulls last"
    )
    by_name: dict[str, tuple[int, int]] = {}
    for row in found.rows(named=True):
        if row["reads"] + row["writes"] > 0:
            predicted, reads = by_name.get(name_of(row), (0, 0))
            by_name[name_of(row)] = (predicted + row["predicted"], reads + row["reads"])
    predicted, reads, writes = (sum(found[name]) for name in sums)
    return Agreement(predicted, reads, reads + writes > 0, by_name)
