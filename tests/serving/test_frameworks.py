"""Choosing an engine: features recounted in plain Python, what may never be recommended, and traces that come back."""

import json
import random
from collections import Counter, defaultdict
from datetime import datetime, timedelta

import pytest
import small_logs
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tenfold.cli import app
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.logs import load
from tenfold.serving import frameworks as choosing
from tenfold.serving.framework_facts import HARDWARE, frameworks, kind_of
from tenfold.serving.frameworks import Custom, Facts, choose
from tenfold.serving.traffic import Traffic, measure, write_trace

START = datetime(2026, 6, 1, 12)
PLAIN = Traffic(1000, 1, 1000.0, 200.0, 0.1, 0.1, 0.0, 0.0, 0.1, 20.0, 60)
NVIDIA = Facts(hardware="nvidia", gpus=8, new_models=False, adapters=False, pinned=False)


def rows(seed=7, number=60):
    """Requests with gaps: unknown counts, hits of a gateway, sessions of one, prompts that begin alike."""
    dice = random.Random(seed)
    made = []
    for n in range(number):
        head = [f"h{dice.randint(0, 3)}"]
        hashes = [*head, *(f"{head[0]}-{n if dice.random() < 0.5 else 0}-{k}" for k in range(dice.randint(0, 3)))]
        made.append(
            small_logs.row(
                ts=START + timedelta(milliseconds=dice.randint(0, 60_000)),
                duration_ms=float(dice.choice([None, 500, 2_000, 9_000]) or 0) or None,
                ttft_ms=dice.choice([None, 100.0, 400.0]),
                session_id=dice.choice([None, "a", "b", f"one{n}"]),
                input_tokens=dice.choice(
                    [None, 128 * len(hashes), 128 * len(hashes) + 50, max(70, 128 * len(hashes) - 150)]
                ),
                cache_read_tokens=dice.choice([None, 0, 64]),
                output_tokens=dice.choice([None, 10, 300]),
                is_structured=dice.choice([None, True, False]),
                gateway_cache_hit=dice.choice([None, False, True]) if n % 7 == 0 else None,
                prefix_hashes=hashes if dice.random() < 0.8 else None,
                prefix_block_tokens=128,
                model=dice.choice(["stacks", "Stacks", "plain"]),
            )
        )
    return made


def ratio(part, whole):
    return part / whole if whole else None


def recounted(made):
    """The features, one by one, without SQL."""
    calls = [one for one in made if not one["gateway_cache_hit"]]
    sessions = Counter(one["session_id"] for one in calls if one["session_id"])
    blocks = Counter((one["model"].lower(), h) for one in calls for h in one["prefix_hashes"] or ())
    read = [one for one in calls if one["input_tokens"] is not None and one["cache_read_tokens"] is not None]
    timed = [one for one in calls if one["duration_ms"]]
    late = [one for one in timed if one["ttft_ms"] is not None]
    steps = sorted(
        [(one["ts"], 1) for one in timed]
        + [(one["ts"] + timedelta(milliseconds=one["duration_ms"]), -1) for one in timed]
    )  # an end sorts before a start of the same instant
    level = peak = 0
    for _, change in steps:
        level += change
        peak = max(peak, level)
    return {
        "requests": len(calls),
        "models": len({one["model"].lower() for one in calls}),
        "mean_input": ratio(*sums(calls, "input_tokens")),
        "mean_output": ratio(*sums(calls, "output_tokens")),
        "cached_ratio": ratio(sum(o["cache_read_tokens"] for o in read), sum(o["input_tokens"] for o in read)),
        "repeated_ratio": ratio(sum(blocks.values()) - len(blocks), sum(blocks.values())),
        "structured_ratio": ratio(*sums(calls, "is_structured")),
        "multi_turn_ratio": ratio(sum(n for n in sessions.values() if n > 1), sum(sessions.values())),
        "ttft_ratio": ratio(sum(o["ttft_ms"] for o in late), sum(o["duration_ms"] for o in late)),
        "peak": peak,
    }


def sums(calls, column):
    known = [one[column] for one in calls if one[column] is not None]
    return sum(known), len(known)


@pytest.mark.parametrize("seed", [7, 8])
def test_features_are_those_of_a_plain_recount(seed):
    made = rows(seed)
    measured = measure(small_logs.ledger(made))
    for name, value in recounted(made).items():
        assert getattr(measured, name) == pytest.approx(value), name


def test_in_flight_is_littles_law():
    made = [small_logs.row(ts=START + timedelta(seconds=n), duration_ms=3_000.0) for n in range(290)]
    measured = measure(small_logs.ledger(made))
    assert measured.peak == 3
    assert measured.in_flight == pytest.approx(290 * 3 / 300, rel=0.02)  # over the five-minute bucket they fill


def test_where_narrows_and_nothing_left_is_not_evaluable():
    ledger = small_logs.ledger(rows())
    whole, part = measure(ledger), measure(ledger, "model = 'plain'")
    assert 0 < part.requests < whole.requests
    with pytest.raises(NotEvaluable, match="nothing to choose by"):
        measure(ledger, "model = 'nobody'")


def test_unknown_columns_are_unknown_not_zero():
    measured = measure(small_logs.ledger([small_logs.row(cache_read_tokens=None)]))
    for name in ("cached_ratio", "repeated_ratio", "structured_ratio", "multi_turn_ratio", "ttft_ratio", "peak"):
        assert getattr(measured, name) is None, name
    missing = {one.fact for one in choose(measured, Facts()).missing}
    assert missing == {
        "concurrency",
        "shared prefixes",
        "sessions",
        "structured output",
        "time to first token",
        "hardware",
        "new models",
        "LoRA adapters",
        "one stable model, pinned",
        "number of GPUs",
    }


def test_nothing_is_missing_where_all_is_known():
    assert choose(PLAIN, NVIDIA).missing == ()


SHARES = st.none() | st.floats(0, 1)
FACTS = st.builds(
    Facts,
    hardware=st.none() | st.sampled_from(sorted(HARDWARE)),
    gpus=st.none() | st.integers(1, 64),
    new_models=st.none() | st.booleans(),
    adapters=st.none() | st.booleans(),
    pinned=st.none() | st.booleans(),
    running=st.none() | st.just("tgi"),
    custom=st.none()
    | st.builds(Custom, st.sampled_from(["hardware", "scale"]), st.none() | st.floats(0, 1e9), st.floats(1e5, 1e7)),
)
TRAFFIC = st.builds(
    Traffic, st.just(100), st.integers(1, 9), SHARES, SHARES, SHARES, SHARES, SHARES, SHARES, SHARES,
    st.none() | st.floats(0, 50), st.none() | st.integers(0, 500),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(TRAFFIC, FACTS)
def test_what_may_never_be_recommended(traffic, facts):
    made = choose(traffic, facts)
    by_name = {one.framework.name: one for one in made.ranking}
    assert not by_name["tgi"].eligible
    assert by_name["tgi"].score == 0
    assert "tgi" not in [one.name for one in made.candidates]
    custom = by_name["custom"].eligible
    wanted = facts.custom
    accepted = wanted is not None and (
        facts.hardware == "own"
        if wanted.because == "hardware"
        else wanted.serving_usd_per_year is not None and wanted.serving_usd_per_year / 100 >= wanted.team_usd_per_year
    )
    assert custom == accepted
    for one in made.ranking:
        if one.eligible and facts.hardware is not None:
            assert facts.hardware in one.framework.hardware
    scores = [one.score for one in made.ranking if one.eligible]
    assert scores == sorted(scores, reverse=True)
    assert [one.eligible for one in made.ranking] == sorted((one.eligible for one in made.ranking), reverse=True)
    assert len(made.candidates) == min(2, sum(1 for one in made.ranking if one.eligible and one.framework.serve))


@settings(max_examples=30, deadline=None)
@given(TRAFFIC, FACTS)
def test_points_are_all_accounted_for_and_both_sides_are_told(traffic, facts):
    for one in choose(traffic, facts).ranking:
        assert one.con
        if one.eligible:
            points = [part.rsplit("(", 1)[1].rstrip(")") for part in (*one.pro, *one.con) if part.endswith(")")]
            assert sum(int(part) for part in points if part.lstrip("+-").isdigit()) == one.score


def test_other_peoples_benchmarks_never_count(monkeypatch):
    before = [(one.framework.name, one.score) for one in choose(PLAIN, NVIDIA).ranking]
    bare = frameworks()._replace(benchmarks=())
    monkeypatch.setattr(choosing, "frameworks", lambda: bare)
    made = choose(PLAIN, NVIDIA)
    assert [(one.framework.name, one.score) for one in made.ranking] == before
    assert made.benchmarks == ()


# serving.md 11, the decision table: a signal, and who must lead or gain by it
@pytest.mark.parametrize(
    ("traffic", "facts", "first"),
    [
        ({"peak": 3}, {"hardware": "cpu"}, "llama.cpp"),
        ({"peak": 3}, {"hardware": "apple"}, "llama.cpp"),
        ({}, {"new_models": True}, "vllm"),
        ({}, {"hardware": "amd"}, "vllm"),
        ({}, {"hardware": "tpu"}, "vllm"),
        ({}, {"adapters": True}, "vllm"),
        ({"ttft_ratio": 0.6}, {"pinned": True}, "tensorrt-llm"),
        ({}, {"hardware": "own", "custom": Custom("hardware", None, 1e6)}, "custom"),
    ],
)
def test_the_decision_table(traffic, facts, first):
    made = choose(PLAIN._replace(**traffic), NVIDIA._replace(**facts))
    assert made.ranking[0].framework.name == first


def test_a_prefix_cache_speaks_for_both_that_have_it():
    plain = {one.framework.name: one.score for one in choose(PLAIN, NVIDIA).ranking}
    shared = {one.framework.name: one.score for one in choose(PLAIN._replace(cached_ratio=0.8), NVIDIA).ranking}
    gained = defaultdict(int, {name: shared[name] - plain[name] for name in plain})
    assert gained["vllm"] == gained["sglang"] > gained["tensorrt-llm"] > gained["llama.cpp"] == 0


def test_orchestration_needs_gpus_to_route_among():
    few = choose(PLAIN, NVIDIA)
    many = choose(PLAIN, NVIDIA._replace(gpus=16))
    assert not any(one.eligible for one in few.orchestration)
    assert all(one.eligible for one in many.orchestration)
    assert any("Dynamo" in note for note in many.notes)


def test_scale_pays_a_team_or_does_not():
    small = choose(PLAIN, NVIDIA._replace(custom=Custom("scale", 3e6, 1e6)))
    large = choose(PLAIN, NVIDIA._replace(custom=Custom("scale", 2e8, 1e6)))
    refused, accepted = (next(one for one in made.ranking if one.framework.name == "custom") for made in (small, large))
    assert refused.con[0] == "one per cent of serving is $30,000 a year, a team $1,000,000"
    assert accepted.eligible
    assert "$2,000,000" in accepted.pro[0]
    assert [one.name for one in large.candidates] == ["vllm", "sglang"]  # it has nothing to be measured yet


def test_every_entry_says_how_it_stands_and_who_says_so():
    for one in frameworks().all.values():
        assert one.source
        assert one.checked.year >= 2026
        assert one.weaknesses
        if one.status in {"archived", "maintenance"}:
            assert one.status_since
            assert one.base == 0
        if one.role == "engine" and one.status == "active":
            assert "{model}" in one.serve
    assert frameworks().all["tgi"].status == "archived"


def test_hardware_by_kind_or_gpu():
    assert kind_of("H100-SXM-80GB") == "nvidia"
    assert kind_of("mi300x") == "amd"
    assert kind_of("TPU") == "tpu"
    with pytest.raises(AssumptionError, match="neither a GPU"):
        kind_of("abacus")


def test_a_trace_comes_back_as_it_was(tmp_path):
    made = rows()
    path = tmp_path / "t.jsonl"
    written = write_trace(small_logs.ledger(made), path)
    kept = sorted(
        (one for one in made if one["input_tokens"] and one["output_tokens"] and not one["gateway_cache_hit"]),
        key=lambda one: one["ts"],
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert written.requests == len(lines) == len(kept)
    assert written.left_out == sum(1 for one in made if not one["gateway_cache_hit"]) - len(kept)
    assert written.block_tokens == 128
    assert sorted((line["input_length"], line["output_length"]) for line in lines) == sorted(
        (one["input_tokens"], one["output_tokens"]) for one in kept
    )
    first = kept[0]["ts"]
    assert [line["timestamp"] for line in lines] == [round((one["ts"] - first).total_seconds() * 1e3) for one in kept]
    for line in lines:
        if "hash_ids" in line:
            assert len(line["hash_ids"]) == -(-line["input_length"] // 128)
    # blocks are shared exactly where hashes were
    hashed = [one for one in kept if one["prefix_hashes"]]
    numbered = [line for line in lines if "hash_ids" in line]
    known = Counter(h for one in hashed for h in one["prefix_hashes"][: -(-one["input_tokens"] // 128)])
    ids = Counter(n for line in numbered for n in line["hash_ids"])
    assert sorted(n for n in ids.values() if n > 1) == sorted(n for n in known.values() if n > 1)
    assert "h0" not in path.read_text()
    log = load(path, set={"provider": "self-hosted", "model": "m"})
    assert log.summary["requests"] == len(lines)


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choose")
    lines = [
        {
            "request_id": str(n),
            "provider": "self-hosted",
            "model": "m",
            "ts": (START + timedelta(seconds=n)).isoformat() + "Z",
            "duration_ms": 2_000,
            "input_tokens": 1000,
            "output_tokens": 50,
            "cache_read_tokens": 800,
            "status": "success",
        }
        for n in range(40)
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    load(folder / "log.jsonl", db=folder / "u.duckdb")
    return folder / "u.duckdb"


def test_command_line(db, tmp_path):
    words = ["serving", "choose", "--db", str(db), "--hardware", "h100-sxm", "--gpus", "8"]
    done = CliRunner().invoke(app, [*words, "--write-trace", str(tmp_path / "out.jsonl"), "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert [one["name"] for one in document["ranking"][:2]] == document["benchmark"]["engines"] == ["vllm", "sglang"]
    assert all(one["for"] or not one["eligible"] for one in document["ranking"])
    assert all(one["against"] for one in document["ranking"])
    assert {"fact", "how"} == set(document["missing"][0])
    assert document["measured"]["shared_ratio"] == 0.8
    assert document["measured"]["peak"] == 2
    assert document["benchmark"]["trace"]["requests"] == 40
    assert any(command.startswith("vllm serve") for command in document["benchmark"]["commands"])
    assert document["order_of_work"][0].startswith("run vLLM")
    assert any(command.startswith("vllm serve m ") for command in document["benchmark"]["commands"])
    said = CliRunner().invoke(app, [*words, "--where", "provider = 'self-hosted'"]).stdout
    assert max(map(len, said.splitlines())) <= 100
    commands = said[said.index("Benchmark ") : said.index("What others")].replace(" \\\n     ", "")
    assert f"--db {db} --where \"provider = 'self-hosted'\" --write-trace trace.jsonl" in commands
    assert "--url localhost:8000" in commands
    assert "shown, not counted" in said
    assert "missing" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--custom-because", "fun"], "two reasons"),
        (["--running", "tgj"], 'Did you mean "tgi"'),
        (["--hardware", "abacus"], "neither a GPU"),
        (["--where", "nothing = 1"], "nothing"),
    ],
)
def test_command_line_refuses(db, words, said):
    done = CliRunner().invoke(app, ["serving", "choose", "--db", str(db), *words])
    assert isinstance(done.exception, AssumptionError)
    assert said in str(done.exception)
