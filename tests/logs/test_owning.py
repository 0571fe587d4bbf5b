"""Owner rules laid over requests: against a slow reading of them, at load and later, and what the log said stays."""

import json
import random
from pathlib import Path

import pytest
from log_files import chat, write
from small_logs import book

from tenfold import config
from tenfold.ledger import attribute
from tenfold.logs import load, open_log, owning
from tenfold.logs.remapping import remap
from tenfold.owners import Owners

ROW = {
    "provider": "openai",
    "model": "stacks",
    "ts": "2026-06-01T12:00:00Z",
    "input_tokens": 1000,
    "output_tokens": 100,
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rules(text):
    Path("tenfold.toml").write_text(text, encoding="utf-8")
    return config.owners()


def rows_of(folder, rows):
    return write(folder / "rows.jsonl", [{**ROW, "request_id": f"r{i}", **row} for i, row in enumerate(rows)])


def owned(log):
    frame = log.requests.sort("request_id")
    return list(zip(frame["team"], frame["feature"], strict=True))


# --- a second, slow implementation: one request after the other, patterns walked sign by sign ---


def fits(pattern, text):
    if not pattern:
        return not text
    if pattern[0] == "*":
        return fits(pattern[1:], text) or (bool(text) and fits(pattern, text[1:]))
    return bool(text) and pattern[0] == text[0] and fits(pattern[1:], text[1:])


def told(row, name):
    if name.startswith("tags."):
        return (row.get("tags") or {}).get(name[5:])
    return row.get(name.removeprefix("logged."))


def slow_owner(row, tables):
    team, feature = row.get("team"), row.get("feature")
    for number, table in enumerate(tables):
        held = {}
        for name, value in table.items():
            if name not in ("team", "feature", "shared", "override"):
                if isinstance(value, dict):
                    held |= {f"{name}.{key}": values for key, values in value.items()}
                else:
                    held[name] = value
        if all(
            told(row, name) is not None and any(fits(one, told(row, name)) for one in values)
            for name, values in held.items()
        ):
            given = table.get("team"), table.get("feature")
            if table.get("override"):
                return (given[0] or team, given[1] or feature, number)
            return (team or given[0], feature or given[1], number)
    return team, feature, None


WORDS = ["a", "ab", "a*b", "a_b", "a%b", "axb", "ab'", 'a"b', "A", "a\\b", "ä", "a b", "b\nb", "[ab]", "a?b", "b"]
PATTERNS = [*WORDS, "a*", "*b", "*", "a*b*", "*_*", "*%*", "*\\*", "*'*", "a**b", "b*b", "[a*", "?*"]
NAMES = ["org", "project", "environment", "user_id", "api_key_id", "client", "logged.team", "logged.feature"]


def drawn(seed):
    draw = random.Random(seed)
    rows = [
        {
            **{name: draw.choice(WORDS) for name in NAMES[:6] if draw.random() < 0.6},
            **{name: draw.choice(["x", "y"]) for name in ("team", "feature") if draw.random() < 0.3},
            "tags": {key: draw.choice(WORDS) for key in ("cc", "it's", "a.b") if draw.random() < 0.5},
        }
        for _ in range(400)
    ]
    tables = []
    for i in range(12):
        table = {"team": f"t{i}"} if draw.random() < 0.9 else {"feature": f"f{i}"}
        if draw.random() < 0.5:
            table["feature"] = f"g{i}"
        if draw.random() < 0.4:
            table["override"] = True
        for name in draw.sample(NAMES, draw.choice([1, 1, 2])):
            values = draw.sample(PATTERNS, draw.choice([1, 2, 3]))
            whole, _, part = name.partition(".")
            if part:
                table.setdefault(whole, {})[part] = [*values, "x"]
            else:
                table[name] = values
        if draw.random() < 0.4:
            table["tags"] = {draw.choice(["cc", "it's", "a.b"]): draw.sample(PATTERNS, 4)}
        tables.append(table)
    return rows, tables


def as_toml(tables):
    made = []
    for table in tables:
        made.append("[[owner]]")
        for name, value in table.items():
            pairs = (
                {f"{name}.{json.dumps(k)}": v for k, v in value.items()} if isinstance(value, dict) else {name: value}
            )
            made += [f"{key} = {json.dumps(held)}" for key, held in pairs.items()]
    return "\n".join(made)


def agrees(folder, seed):
    rows, tables = drawn(seed)
    rules(as_toml(tables))
    right = [slow_owner(row, tables) for row in rows]
    log = load(rows_of(folder, rows))
    order = sorted(range(len(rows)), key=lambda i: f"r{i}")
    assert owned(log) == [right[i][:2] for i in order]
    done = remap(log.store)
    assert done.changed == 0
    assert [rule.rows for rule in done.rules] == [sum(one[2] == i for one in right) for i in range(len(tables))]
    assert sum(one[2] is not None for one in right) > 100  # the draw means something


def test_drawn_rules_over_drawn_rows_are_as_a_slow_reading_has_them(here):
    agrees(here, 1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 40))
def test_more_drawn_rules(here, seed):
    agrees(here, seed)


RULES = """
[[owner]]
team = "search"
feature = "rag"
api_key_id = "sk-a*"
[[owner]]
team = "support"
tags.cc = ["4711", "4712"]
[[owner]]
team = "platform"
client = "gateway*"
override = true
[[owner]]
team = "nobody"
org = "none"
"""
ROWS = [
    {"api_key_id": "sk-a1"},  # search, rag
    {"api_key_id": "xsk-a1", "tags": {"cc": "4712"}},  # anchored: support
    {"api_key_id": "sk-a2", "tags": {"cc": "4711"}, "team": "ml"},  # both fit: the first, and the log's team stands
    {"client": "gateway/2", "team": "ml", "feature": "f"},  # override: platform; the rule names no feature
    {"api_key_id": "sk-A1", "project": "p"},  # case counts: nobody's
    {"is_billable": False},
]
OWNED = [("search", "rag"), ("support", None), ("ml", "rag"), ("platform", "f"), (None, None), (None, None)]
LOGGED = [(None, None), (None, None), ("ml", None), ("ml", "f"), (None, None), (None, None)]


def test_hand_worked(here):
    rules(RULES)
    log = load(rows_of(here, ROWS))
    assert owned(log) == OWNED
    done = remap(log.store, dry_run=True)
    assert [(rule.matched_rows, rule.rows, rule.requests, rule.kept_rows) for rule in done.rules] == [
        (2, 2, 2, 1),
        (2, 1, 1, 0),
        (1, 1, 1, 0),
        (0, 0, 0, 0),
    ]
    assert done.unused == ("tenfold.toml, owner 4",)
    assert done.overlaps == (("tenfold.toml, owner 1", "tenfold.toml, owner 2", 1),)
    lost = done.as_dict()["unallocated"]
    assert (lost["requests"], lost["requests_ratio"], lost["tokens_ratio"]) == (1, 0.2, 0.2)
    assert [(one["project"], one["api_key_id"]) for one in lost["by"]] == [("p", "sk-A1")]
    assert remap(log.store, Owners("by hand")).changed == 4
    assert owned(log) == LOGGED


def both_ways(log):
    """Every number by owner, from the cube and from the raw rows."""
    by = ("team", "feature", "model", "month")
    with attribute(log, book()).session() as session:
        assert session.view_for(by) == "priced_cube"
        frames = [session.totals(by), session.totals(by, priced="priced_requests")]
    return [frame.sort(*by, nulls_last=True).rows() for frame in frames]


def test_remapping_is_the_same_as_loading_with_the_rules_and_can_be_taken_back(here, monkeypatch):
    file = rows_of(here, ROWS)
    rules("")
    log = load(file, db="u.duckdb")
    assert owned(log) == LOGGED
    first, *_ = unmapped = both_ways(log)
    rules(RULES)
    assert remap(log.store, dry_run=True).changed == 4

    def broken(*_):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr("tenfold.logs.remapping.cube.rebuild", broken)
        with pytest.raises(RuntimeError):
            remap(log.store)
    assert owned(open_log("u.duckdb")) == LOGGED  # neither a dry run nor a broken one leaves a trace
    assert remap(log.store).changed == 4
    assert owned(log) == OWNED
    mapped, raw = both_ways(log)
    assert mapped == raw != first
    assert both_ways(load(file)) == [mapped, raw]
    assert remap(log.store).changed == 0
    rules("")
    assert remap(log.store).changed == 4
    assert owned(log) == LOGGED
    assert both_ways(log) == unmapped


@pytest.mark.full
def test_rows_know_which_rules_they_bear(here):
    def state():
        return owning.owner_state(open_log("u.duckdb").store)

    load(rows_of(here, ROWS), db="u.duckdb")
    assert (state().applied, state().current, state().note) == (("none",), None, None)
    version = rules(RULES).version
    assert "Run: tenfold owners --db u.duckdb" in state().note
    assert remap(open_log("u.duckdb").store).before == ("none",)
    assert (state().applied, state().note) == ((version,), None)
    newer = rules(RULES.replace("search", "seekers") + '[[owner]]\nteam = "x"\nproject = "p"\n').version
    again = [{**ROW, "request_id": "r0", **ROWS[0]}, {**ROW, "request_id": "new", "project": "p"}]
    log = load(write(here / "b.jsonl", again), db="u.duckdb")
    assert (log.summary["requests"], log.summary["duplicates"], log.summary["merged"]) == (1, 1, 0)
    assert owned(log)[:2] == [("x", None), ("search", "rag")]
    assert state().applied == (version, newer)
    assert "several owner mappings" in state().note
    remap(open_log("u.duckdb").store)
    assert (state().applied, state().note) == ((newer,), None)
    Path("tenfold.toml").unlink()  # no statement: not another mapping, but its other settings do not apply either
    assert f"bear the owner rules of a tenfold.toml ({newer}) that is not in the working directory" in state().note
    assert "Run: tenfold owners" not in state().note


def test_a_bad_rule_refuses_the_load_before_anything_is_written(here):
    Path("tenfold.toml").write_text('[[owner]]\nteam = "a"\nprojet = "p"\n')
    with pytest.raises(config.AssumptionError, match='Did you mean "project"'):
        load(rows_of(here, ROWS), db="u.duckdb")
    assert not Path("u.duckdb").exists()


class TestKnownRequests:
    KEY = '[[owner]]\nteam = "search"\napi_key_id = "k"\n'

    def one(self, log):
        frame = log.requests
        assert len(frame) == 1
        return frame.select("output_tokens", "team", "api_key_id", "feature").row(0)

    def two(self, here, first, second):
        load(write(here / "a.jsonl", [{**ROW, "request_id": "r", **first}]), db="u.duckdb")
        return load(write(here / "b.jsonl", [{**ROW, "request_id": "r", **second}]), db="u.duckdb")

    @pytest.mark.full
    def test_a_later_snapshot_has_its_own_owner(self, here):
        rules(self.KEY)
        log = self.two(here, {"api_key_id": "k", "output_tokens": 1}, {"api_key_id": "k"})
        assert log.summary["merged"] == 1
        assert self.one(log) == (100, "search", "k", None)

    def test_a_later_snapshot_that_does_not_say_who_keeps_key_and_team(self, here):
        rules(self.KEY)
        first = {"api_key_id": "k", "output_tokens": 1, "feature": "f"}
        log = self.two(here, first, {"cache_read_tokens": 0})
        assert self.one(log) == (100, "search", "k", "f")
        assert remap(log.store).changed == 0
        assert both_ways(log)[0] == both_ways(log)[1]

    @pytest.mark.full
    def test_nor_does_it_lose_them_where_no_rules_are_at_hand(self, here):
        rules(self.KEY)
        load(
            write(here / "a.jsonl", [{**ROW, "request_id": "r", "api_key_id": "k", "output_tokens": 1}]), db="u.duckdb"
        )
        Path("tenfold.toml").unlink()
        log = load(write(here / "b.jsonl", [{**ROW, "request_id": "r"}]), db="u.duckdb")
        assert self.one(log) == (100, "search", "k", None)


HOSTILE = [
    "'; DROP TABLE requests; --",
    "' OR '1'='1",
    '"',
    "x' UNION SELECT 1 --",
    "%",
    "_",
    "\\",
    "$$",
    "{0}",
    "*)--",
]


def test_no_value_key_or_tag_is_ever_sql(here):
    tables = [{"team": f"t{i}'; --", "api_key_id": [word]} for i, word in enumerate(HOSTILE)]
    tables += [{"team": f"u{i}", "tags": {word.replace('"', "q"): [word]}} for i, word in enumerate(HOSTILE)]
    rules(as_toml(tables))
    rows = [{"api_key_id": word} for word in HOSTILE] + [{"tags": {word.replace('"', "q"): word}} for word in HOSTILE]
    log = load(rows_of(here, [*rows, {"api_key_id": "1"}]))
    right = [slow_owner(row, tables)[:2] for row in [*rows, {"api_key_id": "1"}]]
    frame = log.requests
    by_id = dict(zip(frame["request_id"], frame["team"], strict=True))
    assert [by_id[f"r{i}"] for i in range(len(right))] == [team for team, _ in right]
    assert [team for team, _ in right[:10]] == [f"t{i}'; --" for i in range(10)]
    assert remap(log.store).changed == 0


@pytest.mark.full
def test_a_long_list_is_matched_as_a_join(here):
    lines = "\n".join(f"key-{i},team-{i % 50}" for i in range(20_000))
    (here / "owners.csv").write_text(f"api_key_id,team\n{lines}\n")
    rules('owners = "owners.csv"')
    log = load(rows_of(here, [{"api_key_id": f"key-{i}"} for i in (0, 19_999, 20_000)]))
    assert owned(log) == [("team-0", None), ("team-49", None), (None, None)]


@pytest.mark.full
def test_formats_other_than_rows_are_mapped_too(here):
    rules('[[owner]]\nteam = "chatters"\nsource_format = "openai_chat"\nmodel = "gpt-5*"\n')
    assert owned(load(write(here / "c.jsonl", [chat(1)]))) == [("chatters", None)]
