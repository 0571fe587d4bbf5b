"""What breaks the prompt cache, on small logs whose every cost is worked by hand (rates: `cached_turns`)."""

import json
from dataclasses import replace
from datetime import UTC, timedelta

import pytest
from cached_turns import ANTHROPIC, OPENAI, START, B, blocks, causes, hashes, late, per_million, turn
from log_files import chat, write
from small_logs import book, ledger, row

from tenfold.analysis.cache_breaks import cache_breaks
from tenfold.ledger import attribute
from tenfold.logs import load


def found(*rows, prices=ANTHROPIC, **options):
    return cache_breaks(ledger([*rows, late()] if prices == ANTHROPIC else rows, prices), **options)


def session(name, at=0, change=(0, "x")):
    """Two turns of a hundred blocks; the second differs in one of them."""
    first = blocks(100, (99, f"own {name}"))
    second = [*first[: change[0]], change[1], *first[change[0] + 1 :]]
    return [turn(at + 60 * n, 0, 12_800, blocks=made, session_id=name) for n, made in enumerate((first, second))]


LONG = {"cache_write_long_tokens": 10_000}
SLOW = {"ttft_ms": 2_000.0, "duration_ms": 9_000.0}
HAIKU = {"model": "claude-haiku-4-5"}
# Each a feature of one log, in sessions of its own, so that the log is judged once.
SCENARIOS = {
    "read": [turn(0, 0, 10_000), turn(60, 10_000, 500), turn(360, 10_500, 500)],
    "gap": [turn(0, 0, 10_000), turn(300, 10_000, 0, 500), turn(601, 0, 10_000, 500)],
    "partly_uncached": [turn(0, 0, 10_000), turn(301, 0, 4_000, 7_000)],
    "long": [turn(0, 0, 10_000, **LONG), turn(3_600, 10_000, 0), turn(7_201, 0, 10_000, **LONG)],
    "at_300": [turn(0, 0, 10_000), turn(300, 0, 10_000)],
    "after_300": [turn(0, 0, 10_000), turn(300.001, 0, 10_000)],
    "long_at_900": [turn(0, 0, 10_000, **LONG), turn(900, 0, 10_000)],
    "long_and_a_little": [turn(0, 0, 10_000, **LONG), turn(90, 10_000, 500), turn(900, 0, 10_500)],
    "long_then_anew": [turn(0, 0, 10_000, **LONG), turn(90, 0, 10_500), turn(900, 0, 10_500)],
    "weighed": [
        *(turn(60 * n, 0 if n == 0 else 2_000, 2_000 if n == 0 else 0, 100) for n in range(20)),
        *(turn(at, 0, 400_000, session_id="large") for at in (0, 900, 5_000)),
    ],
    "both_terms": [turn(0, 0, 10_000), turn(900, 0, 10_000), turn(960, 10_000, 5_000), turn(9_000, 0, 15_000)],
    "switch": [turn(0, 0, 10_000), turn(60, 0, 10_500, **HAIKU), turn(90, 10_000, 500, 200)],
    "other_conversation": [turn(0, 0, 10_000), turn(60, 0, 5_000, **HAIKU)],
    "in_flight": [turn(0, 0, 10_000, **SLOW), turn(1, 0, 10_000, **SLOW), turn(30, 10_000, 0, **SLOW)],
    "head": session("s", change=(0, "new")),
    "elsewhere": session("s", change=(40, "new")),
    "behind": [
        turn(0, 0, 6_400, 6_400, blocks=blocks(100, (60, "a"))),
        turn(60, 6_400, 0, 6_400, blocks=blocks(100, (60, "b"))),
    ],
    "unhashed": [turn(0, 0, 20_000), turn(60, 0, 21_000), turn(90, 5_000, 3_000)],
    "not_asked": [turn(0, 0, 0, 10_000), turn(60, 0, 0, 10_500)],
    "unpriced": [turn(at, 0, 10_000, model="claude-opus-4-8") for at in (0, 301)],
    "too_short": [turn(at, 0, 0, 3_500, **HAIKU) for at in (0, 60)],
    "unheard_of": [
        turn(0, 0, 0, tokens, model="claude-unheard-of", session_id=f"{tokens}") for tokens in (4_095, 4_097)
    ],
}


@pytest.fixture(scope="module")
def shared():
    named = [
        {**one, "feature": name, "org": name, "session_id": f"{name} {one['session_id']}"}
        for name, rows in SCENARIOS.items()
        for one in rows
    ]
    return found(*named)


@pytest.fixture
def part(shared):
    def only(feature):
        frames = ("frame", "depths", "gaps", "lifetimes")
        return replace(shared, **{name: getattr(shared, name).filter(feature=feature) for name in frames})

    return only


def one(breaks, cause):
    return breaks.frame.filter(cause=cause).row(0, named=True)


def test_a_session_that_reads_all_it_can_breaks_nothing(part):
    breaks = part("read")
    assert causes(breaks) == {"first": 1, "read": 2, "write_unread": 1}
    assert one(breaks, "write_unread")["tokens"] == 500  # nobody came after the last turn
    assert breaks.cost_pusd == per_million(500, "0.75")


def test_a_gap_beyond_the_lifetime(part):
    breaks = part("gap")
    lost = one(breaks, "gap")
    assert (lost["turns"], lost["tokens"], lost["label"]) == (1, 10_000, "replayed")
    assert int(lost["cost_pusd"]) == per_million(10_000, "3.45")
    # what the last turn wrote is in the break already, and is not counted as written in vain again
    assert causes(breaks) == {"first": 1, "read": 1, "gap": 1}
    assert breaks.cost_pusd == breaks.cost("gap")


def test_lost_tokens_that_were_partly_uncached(part):
    assert part("partly_uncached").cost("gap") == per_million(4_000, "3.45") + per_million(6_000, "2.70")


def test_an_entry_with_the_longer_lifetime_lives_longer(part):
    breaks = part("long")
    assert causes(breaks) == {"first": 1, "read": 1, "gap": 1}
    assert breaks.cost("gap") == per_million(10_000, "5.70")


def test_the_lifetime_is_inclusive_and_that_of_the_entry(part):
    assert causes(part("at_300")) == {"first": 1, "unexplained": 1}
    assert causes(part("after_300")) == {"first": 1, "gap": 1}
    assert causes(part("long_at_900")) == {"first": 1, "unexplained": 1}
    # a little more with the default lifetime does not shorten what is held; writing all of it anew does
    assert causes(part("long_and_a_little")) == {"first": 1, "read": 1, "unexplained": 1}
    assert causes(part("long_then_anew")) == {"first": 1, "unexplained": 1, "gap": 1}


def test_gaps_are_weighed_by_tokens_not_by_count(part):
    gaps = {r["gap"]: r for r in part("weighed").gaps.rows(named=True)}
    assert {name: r["turns"] for name, r in gaps.items()} == {"up_to_5_min": 19, "up_to_1_h": 1, "above_1_h": 1}
    assert gaps["up_to_5_min"]["prefix_tokens"] == 19 * 2_100
    assert gaps["up_to_1_h"]["prefix_tokens"] == 400_000


def test_the_longer_lifetime_pays_or_not_by_both_terms(part):
    saving = part("both_terms").lifetimes.row(0, named=True)
    assert (saving["band_tokens"], saving["written_tokens"]) == (10_000, 30_000)
    assert int(saving["saving_pusd"]) == per_million(10_000, "3.45") - per_million(30_000, "2.25")


def test_a_model_switch(part):
    breaks = part("switch")  # for its third turn, the first model's cache is still there
    assert causes(breaks)["model_switch"] == 1
    assert breaks.cost("model_switch") == per_million(10_000, "1.15")
    assert "model_switch" not in causes(part("other_conversation"))  # shorter: another conversation's prompt


def test_sent_before_the_cache_was_readable(part):
    breaks = part("in_flight")
    assert causes(breaks) == {"first": 1, "in_flight": 1, "read": 1}
    assert breaks.cost("in_flight") == per_million(10_000, "3.45")


@pytest.mark.parametrize(("at", "place"), [(0, "head"), (40, "elsewhere")])
def test_a_prefix_broken_at(part, at, place):
    breaks = part(place)
    lost = one(breaks, "prefix_broken")
    assert (lost["place"], lost["tokens"], int(lost["cost_pusd"])) == (place, 12_800, per_million(12_800, "3.45"))
    depth = breaks.depths.row(0, named=True)
    assert (depth["block"], depth["token"], depth["sessions"]) == (at, at * B, 1)


def test_a_depth_that_many_sessions_share():
    rows = [one for n in range(3) for one in session(f"s{n}", at=10_000 * n, change=(40, f"new{n}"))]
    breaks = found(*rows, *session("other", at=50_000, change=(70, "new")))
    places = {(d["block"], d["place"], d["sessions"]) for d in breaks.depths.rows(named=True)}
    assert places == {(40, "fixed_depth", 3), (70, "elsewhere", 1)}
    assert breaks.turns("prefix_broken") == 4


def test_what_changes_behind_the_breakpoint_breaks_nothing(part):
    """Only 6,400 tokens are cached; the second turn replaces the message behind them."""
    assert causes(part("behind")) == {"first": 1, "read": 1}


def test_without_hashes_the_reason_is_open_or_the_history_shrank(part):
    breaks = part("unhashed")
    assert causes(breaks)["unexplained"] == 1
    assert one(breaks, "rewritten")["tokens"] == 3_000


def test_a_volatile_head_is_a_ceiling_and_in_no_total():
    rows = [
        turn(30 * n, 0, 12_800, blocks=blocks(100, (0, f"time {n}")), session_id=None, feature="stamp")
        for n in range(12)
    ]
    shared = [
        turn(30 * n + 1, 0 if n == 0 else 12_672, 12_800 if n == 0 else 0, blocks=blocks(99), session_id=None)
        for n in range(12)
    ]
    breaks = found(*rows, *shared)
    heads = {one["feature"]: (one["starts"], one["heads"], one["is_volatile"]) for one in breaks.heads.rows(named=True)}
    assert heads == {"stamp": (12, 12, True), "tagging": (12, 1, False)}
    lost = breaks.frame.filter(cause="volatile_head").row(0, named=True)
    assert (lost["label"], lost["turns"], lost["tokens"]) == ("ceiling", 11, 11 * 12_800)
    assert breaks.cost_pusd == breaks.cost("write_unread")


def test_nothing_read_though_the_prefix_was_there():
    """Case 17: automatic caching, 2,009 tokens sent again, cached 0; hits are multiples of 128."""
    rows = [
        row(model="gpt-4.1", ts=START + timedelta(seconds=10 * n), input_tokens=2_009, cache_read_tokens=read,
            cache_write_tokens=None, prefix_hashes=hashes(*blocks(15)), prefix_block_tokens=B, source_line=n, load_id=1)
        for n, read in enumerate([0, 0, 1_920, 0, 1_024])
    ]  # fmt: skip
    breaks = found(*rows, prices=OPENAI)
    assert causes(breaks) == {"first": 1, "missed": 2, "partly_read": 1, "read": 1}
    assert breaks.cost("missed") == per_million(2 * 1_920, "1.50")
    assert breaks.cost("partly_read") == per_million(1_920 - 1_024, "1.50")
    misses = breaks.misses.row(0, named=True)
    assert (misses["eligible_turns"], misses["missed_turns"]) == (4, 2)
    assert breaks.not_measurable["unread_writes"] == ("cache_write_tokens",)


def test_below_the_minimum_and_an_unknown_one(part, shared):
    """Case 16: where no minimum is published, the provider's highest stands in, and is shown as that."""
    assert causes(part("too_short")) == {"below_minimum": 2}
    assert one(part("too_short"), "below_minimum")["cost_pusd"] is None
    assert causes(part("unheard_of")) == {"below_minimum": 1, "first": 1}
    rules = {r["model"]: (r["min_tokens"], r["is_min_published"]) for r in shared.rules.rows(named=True)}
    assert rules["claude-unheard-of"] == (4_096, False)
    assert rules["claude-haiku-4-5"] == (4_096, True)


def test_caching_that_was_never_asked_for_is_counted(part):
    breaks = part("not_asked")
    assert causes(breaks) == {"first": 1, "not_cached": 1}
    assert breaks.cost_pusd == 0


def test_writes_in_vain_and_writes_that_others_read():
    rows = [turn(2_000 * n, 0, 8_000, session_id=f"s{n}", feature="vain", blocks=blocks(62, (0, f"{n}")))
            for n in range(3)]  # fmt: skip
    read = [
        turn(0, 0, 8_000, session_id="a", blocks=blocks(62)),
        turn(100, 7_936, 64, session_id="b", blocks=blocks(62)),
    ]
    breaks = found(*rows, *read)
    vain = {one["feature"]: one["tokens"] for one in breaks.frame.filter(cause="write_unread").rows(named=True)}
    assert vain == {"vain": 24_000, "tagging": 64}
    assert breaks.cost("write_unread") == per_million(24_064, "0.75")


def test_a_lifetime_that_the_log_does_not_reach_is_left_out():
    breaks = cache_breaks(ledger([turn(0, 0, 8_000), turn(60, 0, 0, 10, session_id="late")], ANTHROPIC))
    assert "write_unread" not in causes(breaks)


def test_what_cannot_be_measured_names_its_columns():
    rows = [turn(n * 60, 0, 5_000, session_id=None, cache_read_tokens=None) for n in range(2)]
    breaks = cache_breaks(ledger(rows, ANTHROPIC))
    assert causes(breaks) == {"split_unknown": 2}
    assert breaks.not_measurable["gaps"] == ("session_id", "cache_read_tokens")
    assert breaks.not_measurable["prefixes"] == ("prefix_hashes", "cache_read_tokens")
    assert breaks.not_measurable["unread_writes"] == ("session_id or prefix_hashes", "cache_read_tokens")
    assert breaks.not_measurable["in_flight"] == ("ttft_ms or duration_ms",)
    assert breaks.not_measurable["wording"] == ("texts.prompt",)
    assert breaks.cost_pusd == 0


def test_unpriced_breaks_are_counted_not_costed(part):
    lost = one(part("unpriced"), "gap")
    assert (lost["turns"], lost["unpriced_turns"], lost["cost_pusd"]) == (1, 1, None)


def test_a_window_judges_its_own_requests_by_all_that_came_before():
    since = (START + timedelta(seconds=300)).replace(tzinfo=UTC)
    rows = [turn(0, 0, 10_000), turn(301, 0, 10_000), late()]
    breaks = cache_breaks(ledger(rows, ANTHROPIC, since=since))
    assert causes(breaks) == {"gap": 1}


def test_texts_name_the_cause():
    made = ledger([*session("s", change=(0, "new")), late()], ANTHROPIC)
    lines = [r[0] for r in _fetch(made, "select source_line from requests where session_id = 's' order by ts")]
    with made.log.store.writing() as connection:
        for line, now in zip(lines, ("09:00:00", "09:01:00"), strict=True):
            text = json.dumps({"system": f"It is {now}.", "messages": [{"role": "user", "content": "hi"}]})
            connection.execute("insert into texts values (1, ?, NULL, ?, NULL)", [line, text])
    breaks = cache_breaks(made)
    named = breaks.texts.row(0, named=True)
    assert (named["cause"], named["why"], named["turns"]) == ("prefix_broken", "timestamp", 1)
    assert named["cost_pusd"] == breaks.cost("prefix_broken")
    assert "wording" not in breaks.not_measurable


def _fetch(made, sql):
    with made.session() as held:
        return held.engine.fetch(sql).rows()


def test_a_log_without_requests():
    breaks = cache_breaks(ledger([], ANTHROPIC))
    assert (breaks.cost_pusd, len(breaks.frame), len(breaks.rules)) == (0, 0, 0)
    assert breaks.as_dict()["breaks"] == []


def test_requests_without_a_time_and_unbilled_ones_are_not_judged():
    breaks = cache_breaks(ledger([turn(0, 0, 9_000, ts=None), turn(0, 0, 9_000, is_billable=False)], ANTHROPIC))
    assert len(breaks.frame) == 0
    assert breaks.not_measurable["gaps"] == ("ts",)


def test_as_dict_is_json_with_exact_money(part):
    breaks = part("gap")
    told = json.loads(json.dumps(breaks.as_dict()))
    assert told["cost_usd"] == "0.0345"
    assert [one["cost_usd"] for one in told["breaks"] if one["cause"] == "gap"] == ["0.0345"]
    evens = {one["model"]: one for one in told["break_evens"]}["claude-sonnet-4-6"]
    assert (evens["keep_alive_s"], evens["hit_share"], evens["long_hit_share"]) == ("3750", "0.217391", "0.526316")


def test_from_a_log_with_its_texts_to_the_cause(tmp_path):
    """Ten prompts of one feature that begin with the time: loaded, hashed, found and named."""
    said = " ".join(f"rule number {number}" for number in range(500))

    def call(number):
        system = f"It is 2026-07-01 09:{number:02}:00. {said}"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": "Go on."}]
        usage = {"prompt_tokens": 1_600, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}}
        return chat(number, created=1_782_896_400 + 30 * number, model="gpt-4.1", usage=usage,
                    request={"model": "gpt-4.1", "messages": messages})  # fmt: skip

    log = load(write(tmp_path / "a.jsonl", [call(number) for number in range(10)]), keep_text=True)
    breaks = cache_breaks(attribute(log, book(OPENAI)))
    lost = breaks.frame.filter(cause="volatile_head").row(0, named=True)
    assert (lost["label"], lost["turns"], lost["tokens"]) == ("ceiling", 9, 9 * 1_600)
    named = breaks.texts.row(0, named=True)
    assert (named["why"], named["turns"], named["cost_pusd"]) == ("timestamp", 9, lost["cost_pusd"])
    assert breaks.cost_pusd == 0
