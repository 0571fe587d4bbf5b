"""Prompt-cache policies replayed on small logs: reads and writes by hand from the shipped rules and rates."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from quick import few
from small_logs import book, facts, ledger, look, row

import tenfold as tf
from tenfold.levers import LEVERS, Judged
from tenfold.levers.assume import assumptions
from tenfold.levers.prefix_cache import LEVER
from tenfold.levers.repricing import own_bill
from tenfold.planning.portfolio import Portfolio
from tenfold.slo import Slo

START = datetime(2026, 6, 1, 9)
B = 128
SONNET, HAIKU = ("anthropic", "claude-sonnet-4-5"), ("anthropic", "claude-haiku-4-5")  # minimum 1,024 and 4,096
GPT5, GPT41 = ("openai", "gpt-5"), ("openai", "gpt-4.1")  # no write fee; whole increments of 128
GPT56, GPT6 = ("openai", "gpt-5.6-luna"), ("openai", "gpt-6-luna")  # write fee; 1,800 s; only the latter a 12-hour rate
COHERE = ("cohere", "command-a")  # no rule
MICRO = 10**6  # pUSD of a millionth of a USD: tokens x USD per million


def t(at, tokens, model=SONNET, text="x", shared=None, block=B, **columns):
    """A request `at` seconds after the start; its first `shared` blocks (all of them) are those of its text."""
    count = tokens // block
    same = count if shared is None else shared
    hashes = [f"{text}/{n}" if n < same else f"{text}/{n} of {at}" for n in range(count)]
    return row(
        **{
            "provider": model[0],
            "model": model[1],
            "ts": START + timedelta(seconds=at),
            "input_tokens": tokens,
            "prefix_hashes": hashes,
            "prefix_block_tokens": block,
            **columns,
        }
    )


def served(rows, prices=None, **table):
    """Let the lever replay on its own: (read, written, written long) of each request, None where it is left alone."""
    made = ledger(rows, prices or tf.price_book())
    assumed = assumptions({"prefix_cache": table}, LEVERS).levers
    with made.session() as session:
        bill = own_bill(session, (LEVER,), assumed, Slo())
        judged = LEVER.judge(bill, assumed["prefix_cache"])
        assert isinstance(judged, Judged), judged.reason
        counted = Portfolio(bill, (LEVER,), assumed, {"prefix_cache": judged}).tally("prefix_cache")
        columns = "v.cache_read_tokens, v.cache_write_tokens, v.cache_write_long_tokens, v.input_tokens"
        order = f"select b.rid, v.is_kept, {columns} from lever_base as b left join {counted.versions} as v "
        found = session.engine.fetch(f"{order} on v.rid = b.rid and v.levers = {counted.bit} order by b.rid").rows()
    assert [one[5] for one in found if one[1]] == [
        one["input_tokens"] for one, (_, is_kept, *_) in zip(rows, found, strict=True) if is_kept
    ]
    return [one[2:5] if one[1] else None for one in found]


def hold(cases, **table):
    """Replay cases beside each other, each an organization of its own (no cache is shared across them)."""
    rows = [{**one, "org": name} for name, (made, _) in cases.items() for one in made]
    got = iter(served(rows, **table))
    for name, (made, expected) in cases.items():
        assert [next(got) for _ in made] == expected, name


def w(tokens):
    """Written, nothing read."""
    return (0, tokens, 0)


NONE = (0, 0, 0)
FIRST_TOKEN = {"ttft_ms": 1_000.0, "duration_ms": 9_000.0}


def test_history():
    hold(
        {
            # 2,000 tokens are 15 whole blocks (1,920); the rest of the longer prompt is written, its tail too
            "gap 299": ([t(0, 2_000), t(299, 2_500)], [w(2_000), (1_920, 580, 0)]),
            "gap 300": ([t(0, 2_000), t(300, 2_500)], [w(2_000), (1_920, 580, 0)]),
            "gap 301": ([t(0, 2_000), t(301, 2_500)], [w(2_000), w(2_500)]),
            "a read refreshes": ([t(0, 2_048), t(250, 2_048), t(500, 2_048)], [w(2_048), *[(2_048, 0, 0)] * 2]),
            "1,023": ([t(0, 1_023), t(60, 1_023)], [NONE, NONE]),
            "1,024": ([t(0, 1_024), t(60, 1_024)], [w(1_024), (1_024, 0, 0)]),
            "1,025": ([t(0, 1_025), t(60, 1_025)], [w(1_025), (1_024, 1, 0)]),
            "haiku below 4,096": ([t(0, 4_095, HAIKU), t(9, 4_096, HAIKU)], [NONE, w(4_096)]),
            # five before the first token, one at that instant: all write; a millisecond later it is read
            "fan-out": (
                [t(at, 2_048, **FIRST_TOKEN) for at in (0, 0, 0.1, 0.5, 0.9, 1, 1.001)],
                [w(2_048)] * 6 + [(2_048, 0, 0)],
            ),
            "common beginning": (
                [t(0, 2_048, shared=10), t(60, 2_048, shared=10), t(90, 2_048, shared=7)],
                [w(2_048), (1_280, 768, 0), w(2_048)],  # 7 blocks are 896 tokens: below the minimum
            ),
            "workspaces": ([t(0, 2_048, project="a"), t(9, 2_048, project="b")], [w(2_048)] * 2),
            "models": ([t(0, 8_192), t(9, 8_192, HAIKU)], [w(8_192)] * 2),
            "gpt-5": ([t(0, 2_000, GPT5), t(300, 2_000, GPT5), t(601, 2_000, GPT5)], [NONE, (1_920, 0, 0), NONE]),
            "gpt-5 minimum": (
                [t(at, n, GPT5, text=f"{n}") for n in (1_023, 1_024, 1_151) for at in (0, 9)],
                [NONE, NONE, NONE, (1_024, 0, 0), NONE, (1_024, 0, 0)],
            ),
            # blocks of 100: 1,900 tokens are found, 1,792 are whole increments; 1,100 are 1,024
            "gpt-4.1 increments": (
                [t(at, n, GPT41, text=f"{n}", block=100) for n in (1_900, 1_100) for at in (0, 9)],
                [NONE, (1_792, 0, 0), NONE, (1_024, 0, 0)],
            ),
            "gpt-5 projects": ([t(n, 2_048, GPT5, project=f"{n}") for n in (0, 9)], [NONE, (2_048, 0, 0)]),
            "gpt-5.6": (
                [t(0, 2_000, GPT56), t(1_800, 2_500, GPT56), t(3_601, 2_000, GPT56)],
                [w(2_000), (1_920, 580, 0), w(2_000)],
            ),
            "no rule": ([t(0, 2_000, COHERE), t(9, 2_000, COHERE)], [None, None]),
            "no hashes": ([t(0, 2_000, prefix_hashes=None), t(9, 2_000)], [None, w(2_000)]),
        },
        policy="history",
    )  # fmt: skip


def test_longer_lifetime():
    hold(
        {
            "gap 3,599": ([t(0, 2_048), t(3_599, 2_048)], [(0, 2_048, 2_048), (2_048, 0, 0)]),
            "gap 3,600": ([t(0, 2_000), t(3_600, 2_500)], [(0, 2_000, 2_000), (1_920, 580, 580)]),
            "gap 3,601": ([t(0, 2_048), t(3_601, 2_048)], [(0, 2_048, 2_048)] * 2),
            "gpt-5": ([t(at, 2_048, GPT5) for at in (0, 86_400, 172_801)], [NONE, (2_048, 0, 0), NONE]),
            "gpt-6": ([t(0, 2_048, GPT6), t(43_200, 2_048, GPT6)], [(0, 2_048, 2_048), (2_048, 0, 0)]),
            "no rate for the longer write": ([t(0, 2_048, GPT56)], [None]),
        },
        policy="history",
        lifetime="long",
    )  # fmt: skip


def test_system():
    hold(
        {
            # ten blocks are cached, whatever comes behind them
            "head": ([t(0, 2_000, shared=10), t(60, 3_000, shared=10)], [w(1_280), (1_280, 0, 0)]),
            "shorter": ([t(0, 1_100), t(60, 1_100)], [w(1_024), (1_024, 0, 0)]),
            "too short": ([t(0, 1_000), t(60, 1_000)], [NONE, NONE]),
            "gpt-5": ([t(0, 2_000, GPT5), t(60, 2_000, GPT5)], [NONE, (1_280, 0, 0)]),
        },
        policy="system",
        system_tokens=1_300,
    )
    assert served([t(0, 2_000), t(60, 2_000)], policy="system", system_tokens=1_023) == [NONE, NONE]


def test_by_session():
    def turns(*made, **columns):
        return [t(at, tokens, prefix_hashes=None, session_id="s", **columns) for at, tokens in made]

    cases = {
        "turns": (turns((0, 2_000), (60, 2_500), (361, 2_500)), [w(2_000), (2_000, 500, 0), w(2_500)]),
        "shorter": (turns((0, 2_000), (60, 1_500)), [w(2_000), w(1_500)]),
        "in flight": (turns((0, 2_000), (1, 2_500), (60, 2_500), **FIRST_TOKEN), [w(2_000), w(2_500), (2_500, 0, 0)]),
        "gpt-5": (turns((0, 2_000), (60, 2_500), model=GPT5), [NONE, (1_920, 0, 0)]),
        "no session": ([t(0, 2_000, prefix_hashes=None)], [None]),
    }
    hold(cases, policy="history")
    found = look(
        LEVER, ledger(turns((0, 2_000), (60, 2_500)), tf.price_book()), {"prefix_cache": {"policy": "history"}}
    )
    assert found.status == "ok"


def test_hashes_outside_where_do_not_hide_sessions():
    rows = [*(t(at, 2_000, prefix_hashes=None, session_id="s") for at in (0, 60)), t(9, 2_000, feature="other")]
    assert served(rows, policy="history", where="feature = 'tagging'") == [w(2_000), (2_000, 0, 0), None]


def test_dollars_and_facts():
    made = ledger([t(0, 2_000, feature="chat"), t(60, 2_500, feature="chat"), t(0, 2_000, text="y")], tf.price_book())
    plan = tf.plan(made, assume={"prefix_cache": {"policy": "history"}}, levers=(LEVER,))
    one = plan.estimates[0]
    # now 3 a million; then 2,000 and 580 written at 3.75 and 1,920 read at 0.30; the other is written in vain
    now = 6_500 * 3 * MICRO + 300 * 15 * MICRO
    then = (2_000 + 580 + 2_000) * 3_750_000 + 1_920 * 300_000 + 300 * 15 * MICRO
    assert (one.status, one.label, one.alone_pusd) == ("ok", "replayed", now - then)
    told = {fact["name"]: fact["value"] for fact in one.evidence}
    assert (told["replayed_read_tokens"], told["replayed_write_tokens"]) == (1_920, 4_580)
    assert told["write_premium_usd"] == "0.003435"  # 4,580 x 0.75
    assert (told["cost_now_usd"], told["cost_moved_usd"]) == ("0.024", "0.022251")
    # (3.75 - 3) / (3 - 0.3), (3.75 - 3) / (3.75 - 0.3), 300 x 3.75 / 0.3
    names = ("reads_per_write", "hit_share", "keep_alive_s")
    assert [told[f"claude-sonnet-4-5_{name}"] for name in names] == ["0.277778", "0.217391", "3750"]
    assert (told["lookback_blocks_not_applied"], told["replayed_by"]) == (20, "prefix hashes")
    assert one.advice.first_action == (
        "Set a cache breakpoint (cache_control) at the end of the whole prompt in `chat`: 2 requests then read 1,920 "
        "tokens and write 2,580, net <$0.01. Leave `tagging` as it is: writing would cost <$0.01 more than it saves "
        "there."
    )


@pytest.mark.parametrize(
    ("billed", "holds"),
    few(
        1,
        [
            ([(0, 2_048), (1_862, 186)], True),  # 2,048 / 1,862 is just below 1.1
            ([(0, 2_048), (1_861, 187)], False),
            ([(0, 2_048), (2_048, 0), (227, 0)], True),  # the third touches one block and reads nothing: 2,048 / 2,275
            ([(0, 2_048), (2_048, 0), (228, 0)], False),
            ([(0, 2_048), (0, 2_048)], False),  # the replay would have read
        ],
    ),
)
def test_agreement_gate(billed, holds):
    rows = [
        t(60 * n, 2_048, cache_read_tokens=read, cache_write_tokens=write) for n, (read, write) in enumerate(billed)
    ]
    found = look(LEVER, ledger(rows, tf.price_book()), {"prefix_cache": {"policy": "history"}})
    assert found.status == ("ok" if holds else "not_measurable"), found.reason
    if not holds:
        assert (found.applies, found.addressed_pusd) == (False, None)
        assert f"finds {facts(found)['as_shipped_predicted_read_tokens']:,} cached tokens" in found.reason
        assert f"{sum(read for read, _ in billed):,} were billed" in found.reason
        assert found.as_billed_pusd is not None
        assert "--breaks" in found.advice.first_action


@pytest.mark.full
def test_one_feature_that_reads_less_than_it_should_is_named():
    def pair(feature, tokens, read):
        counts = ((0, tokens), (read, tokens - read))
        return [
            t(60 * n, tokens, text=feature, feature=feature, cache_read_tokens=one, cache_write_tokens=other)
            for n, (one, other) in enumerate(counts)
        ]

    # together 21,504 predicted of 20,480 billed: within a tenth; of `qa` alone 1,024 of 0
    rows = [*pair("chat", 20_480, 20_480), *pair("qa", 1_024, 0)]
    plan = tf.plan(ledger(rows, tf.price_book()), assume={"prefix_cache": {"policy": "history"}}, levers=(LEVER,))
    found = plan.estimates[0]
    assert found.status == "ok"
    assert found.advice.first_action.startswith(
        "Find what breaks the cache in `qa` before you set anything (`tenfold levers --breaks`): by its own "
        "breakpoints it should have read 1,024 tokens and read 0. Repaired, 2 requests then read 1,024 tokens and "
        "write 1,024, net "
    )
    told = {fact["name"]: fact["value"] for fact in found.evidence}
    assert (told["as_shipped_predicted_read_tokens_qa"], told["as_shipped_billed_read_tokens_qa"]) == (1_024, 0)
    assert "as_shipped_billed_read_tokens_chat" not in told


def chats(day, text):
    """Two turns that pay: 2,048 written, 2,048 read and 1,024 written."""
    return [t(86_400 * day + at, tokens, text=f"{text}{day}") for at, tokens in ((0, 2_048), (60, 3_072))]


CHATS = 2_048 * 2_700_000 - 3_072 * 750_000
ALONE = -3 * 2_048 * 750_000


def alone(day):
    """Three prompts that nobody sends again."""
    return [t(86_400 * day, 2_048, text=f"{day} {n}") for n in range(3)]


@pytest.mark.full
def test_best_is_chosen_on_the_earlier_part():
    rows = [one for day in range(4) for one in chats(day, "c")] + [one for day in (4, 5) for one in alone(day)]
    assume = {"prefix_cache": {"policy": "best", "system_tokens": 1_280}}
    one = tf.plan(ledger(rows, tf.price_book()), assume=assume, levers=(LEVER,)).estimates[0]
    told = {fact["name"]: fact["value"] for fact in one.evidence}
    assert (one.alone_pusd, one.holdout_pusd) == (4 * CHATS + 2 * ALONE, 2 * ALONE)
    assert told["history_default_earlier_usd"] == "0.0129024"  # 4 x 3,225.6 uUSD
    # of a head of 1,280: 1,280 x (2.7 - 0.75); with the longer lifetime 2,048 x 2.7 - 3,072 x 3, which is a loss
    assert told["system_default_earlier_usd"] == "0.009984"
    assert float(told["history_long_earlier_usd"]) < 0
    other = [one for day in range(4) for one in alone(day)] + [one for day in (4, 5) for one in chats(day, "c")]
    one = tf.plan(ledger(other, tf.price_book()), assume=assume, levers=(LEVER,)).estimates[0]
    assert (one.status, one.alone_pusd, one.holdout_pusd) == ("ok", 0, None)
    assert "no other policy saved anything on the earlier 4 days" in one.reason


def joint(rows, **assume):
    assume["prefix_cache"] = {"policy": "history"}
    levers = tuple(one for one in LEVERS if one.name in assume)
    plan = tf.plan(ledger(rows, tf.price_book()), assume=assume, levers=levers)
    assert {one.name for one in plan.estimates if one.status == "ok"} == set(assume)
    return plan.spend_pusd - plan.joint_all_pusd


OUT = 100 * 15 * MICRO


@pytest.mark.full
def test_a_request_that_skip_removed_refreshes_nothing():
    stored = {"params_hash": "p", "status": "success", "finish_reason": "stop", "duration_ms": 1_000.0}
    rows = [t(at, 2_048, prompt_hash=prompt, **stored) for at, prompt in ((0, "a"), (200, "a"), (400, "b"))]
    assert served(rows, policy="history") == [w(2_048), (2_048, 0, 0), (2_048, 0, 0)]
    # the second is answered from the cache of answers, so the third comes 400 s after the first: written again
    assert joint(rows, skip={"where": "true"}) == 2 * (2_048 * 3_750_000 + OUT)


@pytest.mark.full
def test_a_routed_request_reads_from_the_pool_of_its_new_model(scored):
    rows = [t(at, 8_192, feature=name, request_id=f"r{at}") for at, name in ((0, "a"), (60, "b"), (120, "b"))]
    evals = scored(*({"request_id": f"r{at}", "model": HAIKU[1], "score": 1} for at in (60, 120)))
    route = {"where": "feature = 'b'", "to_model": HAIKU[1], "evals": evals, "min_quality": 0.5}
    assert served(rows, policy="history") == [w(8_192), (8_192, 0, 0), (8_192, 0, 0)]
    # haiku: 1 in, 0.1 read, 1.25 written, 5 out
    cold, warm = 8_192 * 1_250_000, 8_192 * 100_000
    assert joint(rows, route=route) == 8_192 * 3_750_000 + OUT + cold + warm + 2 * 100 * 5 * MICRO


@pytest.mark.parametrize(("cut", "read"), [("tail", 2_048), pytest.param("head", 0, marks=pytest.mark.full)])
def test_a_cut_prompt_is_read_as_far_as_it_begins_alike(cut, read):
    rows = [t(0, 4_096), t(60, 6_144)]
    trim = {"where": "true", "input_remove_ratio": 0.5, "cut": cut}
    written = 2_048 + 3_072 - read
    assert joint(rows, trim=trim) == written * 3_750_000 + read * 300_000 + 2 * OUT


def drawn(seed, size):
    rng = random.Random(f"prefix {seed}")
    rows, at = [], 0.0
    for number in range(size):
        at += rng.choice((0.2, 0.4, 5, 30, 60, 120, 299, 301, 3_601))
        model = rng.choice((SONNET, GPT5, GPT41, GPT6))
        tokens = rng.choice((900, 1_023, 1_024, 1_025, rng.randint(1_100, 6_000)))
        more = {"org": rng.choice("ab"), "ttft_ms": 500.0, "request_id": f"r{number}"}
        block = B if model != GPT5 else 100
        rows.append(t(at, tokens, model, rng.choice("xy"), rng.choice((None, None, 12, 20)), block, **more))
    return rows


def hold_properties(seed, size):
    rows = drawn(seed, size)
    short, long = served(rows, policy="history"), served(rows, policy="history", lifetime="long")
    for one, (read, written, written_long), (long_read, long_written, all_long) in zip(rows, short, long, strict=True):
        tokens, is_fee = one["input_tokens"], one["model"] in (SONNET[1], GPT6[1])
        # M20: nothing is lost or made (inputs stay as they are, see `served`); long writes are writes
        assert 0 <= read <= tokens
        assert written == (tokens - read if is_fee and tokens >= 1_024 else 0)
        assert (written_long, all_long) == (0, long_written)
        assert long_read >= read  # M8: an entry that lives longer is read no less
        if one["provider"] == "openai" and not is_fee:
            assert read % 128 == 0  # M22
            assert read == 0 or read >= 1_024
    assert any(read for read, _, _ in short)
    # M21: a log billed as replayed is replayed as it was billed
    billed = [
        {**one, "cache_read_tokens": read, "cache_write_tokens": written}
        for one, (read, written, _) in zip(rows, short, strict=True)
    ]
    found = tf.plan(ledger(billed, tf.price_book()), assume={"prefix_cache": {"policy": "history"}}, levers=(LEVER,))
    told = {fact["name"]: fact["value"] for fact in found.estimates[0].evidence}
    total = sum(read for read, _, _ in short)
    assert told["as_shipped_predicted_read_tokens"] == told["as_shipped_billed_read_tokens"] == total
    assert found.estimates[0].alone_pusd == 0


def test_properties():
    hold_properties(0, 80)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 26))
def test_properties_at_length(seed):
    hold_properties(seed, 150)


SAME = """provider = "anthropic"
[[price]]
model = "claude-sonnet-4-5"
input = 3
cache_read = 3
cache_write = 3
cache_write_long = 3
output = 15
source = "test"
checked = 2026-01-01
"""


def test_a_cache_that_costs_what_input_costs_saves_nothing():
    rows = [t(0, 2_000), t(60, 2_500), t(90, 2_500)]
    found = look(LEVER, ledger(rows, book(SAME)), {"prefix_cache": {"policy": "history"}})  # M9
    assert facts(found)["replayed_read_tokens"] == 1_920 + 2_432
    assert facts(found)["cost_now_usd"] == facts(found)["cost_moved_usd"]
    assert found.advice.first_action.startswith("Leave caching as it is: this policy costs the same")


@pytest.mark.full
def test_rules_of_an_overlay_count(tmp_path):
    rule = (
        '[[rule]]\nprovider = "anthropic"\nmodels = ["claude-sonnet-4-5"]\ncontrol = "explicit"\nmin_tokens = 512\n'
        'lifetime_s = 60\nsource = "test"\nchecked = 2026-01-01\n'
    )
    (tmp_path / "caching.toml").write_text(rule)
    rows = [t(0, 600), t(60, 600), t(121, 600)]
    assert served(rows, policy="history") == [NONE] * 3
    assert served(rows, tf.price_book(overlay=tmp_path), policy="history") == [w(600), (512, 88, 0), w(600)]
