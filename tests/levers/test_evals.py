"""The evals file: three formats alike, refusals with their place, exact means, models by any spelling."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tf
from tenfold.errors import AssumptionError
from tenfold.levers import evals as reading
from tenfold.levers.assume import assumptions
from tenfold.levers.base import Assumption
from tenfold.levers.scoring import (
    lacking_models,
    least_score,
    register,
    scale_note,
    scores,
    unmatched,
)
from tenfold.levers.values import path
from tenfold.prices.naming import model_key
from tenfold.store.engines.duckdb import DuckDBEngine

BOOK = tf.price_book()
read_evals = partial(reading.read_evals, lever="route")
MINI = ("openai", "gpt-4o-mini")
CSV = """request_id,feature,model,score,cost_usd,input_tokens,output_tokens,finish_reason,latency_ms
r1,chat,gpt-4o-mini,0.9,0.000000000001,10,5,stop,12.5
r1,chat,openai/GPT-4o-mini,0.8,0.000000000002,11,6,max_tokens,
r2,,gpt-4o-mini-2024-07-18,1,,,,,
,tagging,gpt-4o-mini,1e-1,,,,,
r2,,gpt-4o,0.7,0.01,,,,
"""


def written(tmp_path, text, name="evals.csv"):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


def one(score, **more):
    return {"request_id": "r", "model": "gpt-4o-mini", "score": score, **more}


def jsonl(tmp_path, *rows):
    return written(tmp_path, "\n".join(json.dumps(row) for row in rows), "evals.jsonl")


def test_a_file_is_the_same_in_its_three_formats(tmp_path):
    file = written(tmp_path, CSV)
    found = read_evals(file)
    assert len(found.frame) == 5
    assert found.frame.row(0) == (2, "r1", "chat", "gpt-4o-mini", 9 * 10**11, 1, 10, 5, "stop", 12_500)
    assert found.frame.row(1)[4:] == (8 * 10**11, 2, 11, 6, "length", None)
    assert found.frame.row(3) == (5, None, "tagging", "gpt-4o-mini", 10**11, None, None, None, None, None)
    assert found.frame.dtypes == [pl.Int64, *[pl.String] * 3, *[pl.Int64] * 4, pl.String, pl.Int64]
    assert found.has("cost_pusd")
    assert found.models == ("gpt-4o", "gpt-4o-mini", "gpt-4o-mini-2024-07-18", "openai/GPT-4o-mini")

    table = pl.read_csv(file, schema_overrides={"cost_usd": pl.Decimal(20, 12), "score": pl.Float32})
    table.write_parquet(tmp_path / "evals.parquet")
    texts = {"request_id", "feature", "model"}
    rows = [
        {name: value if name in texts or value is None else float(value) for name, value in row.items()}
        for row in pl.read_csv(file, infer_schema=False).drop("finish_reason").iter_rows(named=True)
    ]
    as_json = read_evals(jsonl(tmp_path, *rows))
    as_parquet = read_evals(tmp_path / "evals.parquet")
    assert as_parquet.frame.drop("line").equals(found.frame.drop("line"))
    assert as_json.frame.drop("line", "finish_reason").equals(found.frame.drop("line", "finish_reason"))
    assert as_parquet.frame["line"].to_list() == as_json.frame["line"].to_list() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("request_id,model,scor\n", r'evals.csv: unknown column "scor". Did you mean "score"\? It takes request_id'),
        ("request_id,model\nr,m\n", "evals.csv: there is no column score. It takes"),
        ("model,score\n", r"no column request_id \(or feature\)"),
        ("model,model,score\n", 'column "model" stands twice'),
        ("request_id,model,score\n", "holds no score"),
        ("", "there is no column"),
        ("request_id,model,score\nr,m,1\nr,m,\n", "evals.csv, line 3: score is empty"),
        ("request_id,model,score\nr,m\n", "line 2: 2 values for 3 columns"),
        ("request_id,model,score\nr,,1\n", "line 2: model is empty"),
        ("request_id,model,score\n ,m,1\n", "line 2: neither request_id nor feature"),
        ("request_id,model,score\nr,m,nan\n", 'line 2: score must be a number, not "nan"'),
        ("request_id,model,score\nr,m,inf\n", "score must be a number"),
        ("request_id,model,score\nr,m,good\n", "score must be a number"),
        ("request_id,model,score\nr,m,95%\n", "write 95% as 0.95"),
        ("request_id,model,score\nr,m,True\n", r"write 1 or 0"),
        ("request_id,model,score\nr,m,1e9\n", "must lie within 1,000,000 of 0"),
        ("request_id,model,score,cost_usd\nr,m,1,-1\n", 'line 2: cost_usd must be at least 0, not "-1"'),
        ("request_id,model,score,cost_usd\nr,m,1,0.0000000000001\n", "takes at most 12 decimals"),
        ("request_id,model,score,cost_usd\nr,m,1,1e12\n", "more than a request can cost"),
        ("request_id,model,score,input_tokens\nr,m,1,-3\n", "input_tokens must be at least 0"),
        ("request_id,model,score,output_tokens\nr,m,1,3.5\n", "output_tokens must be a whole number"),
        ("request_id,model,score,finish_reason\nr,m,1,lenght\n", 'must be one of stop, .* Did you mean "length"'),
        ("request_id,model,score,latency_ms\nr,m,1,-1\n", "latency_ms must be at least 0"),
        ('request_id,model,score\nr,m,"1\n', "cannot be read"),
    ],
)  # fmt: skip
def test_refused_with_its_place(tmp_path, text, what):
    with pytest.raises(AssumptionError, match=what) as error:
        read_evals(written(tmp_path, text))
    assert str(error.value).startswith(f"[route] evals: {tmp_path / 'evals.csv'}")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"request_id": "r", "model": "m"}', "line 2: there is no column score"),
        ('{"request_id": "r", "model": "m", "score": NaN}', 'line 2: score must be a number, not "NaN"'),
        ('{"request_id": "r", "model": "m", "score": true}', "line 2: score must be a text or a number, not true"),
        ('{"request_id": "r", "model": "m", "score": [1]}', "score must be a text or a number"),
        ('{"request_id": "r", "model": "m", "score": 1, "score": 2}', "a key stands twice"),
        ('{"request_id": "r"', "line 2: not valid JSON"),
        ("3", "line 2: must be one JSON object a line"),
        ('{"requestid": "r", "model": "m", "score": 1}', 'unknown column "requestid". Did you mean "request_id"'),
    ],
)
def test_refused_lines_of_json(tmp_path, line, what):
    good = json.dumps(one(1))
    with pytest.raises(AssumptionError, match=what):
        read_evals(written(tmp_path, f"{good}\n{line}\n", "evals.jsonl"))


def test_refused_files(tmp_path):
    written(tmp_path, CSV)
    with pytest.raises(
        AssumptionError, match=r'eval.csv: cannot be read: .*Did you mean "evals.csv"\? A path is relative'
    ):
        read_evals(tmp_path / "eval.csv")
    with pytest.raises(AssumptionError, match=r"nowhere.*cannot be read"):
        read_evals(tmp_path / "nowhere" / "evals.csv")
    with pytest.raises(AssumptionError, match=r"an evals file is .csv, .parquet, .jsonl"):
        read_evals(written(tmp_path, "", "evals.xlsx"))
    with pytest.raises(AssumptionError, match=r"evals.parquet: cannot be read"):
        read_evals(written(tmp_path, "no", "evals.parquet"))
    pl.DataFrame([one(True)]).write_parquet(tmp_path / "bool.parquet")
    with pytest.raises(AssumptionError, match="score must hold texts or numbers, not Boolean"):
        read_evals(tmp_path / "bool.parquet")
    pl.DataFrame([one(float("nan"))]).write_parquet(tmp_path / "nan.parquet")
    with pytest.raises(AssumptionError, match="row 1: score must be a number"):
        read_evals(tmp_path / "nan.parquet")
    (tmp_path / "latin.csv").write_bytes(b"request_id,model,score\n\xff,m,1\n")
    with pytest.raises(AssumptionError, match="cannot be read"):
        read_evals(tmp_path / "latin.csv")


def test_a_changed_file_is_read_again(tmp_path):
    assert len(read_evals(written(tmp_path, CSV)).frame) == 5
    assert len(read_evals(written(tmp_path, CSV + "r9,,gpt-4o,0.1,,,,,\n")).frame) == 6


def test_a_path_is_taken_from_the_folder_of_the_assumptions(tmp_path, monkeypatch):
    lever = SimpleNamespace(
        name="route",
        effort_days=Decimal(1),
        assumptions=(Assumption("evals", None, "file", "none named", conservative=True, read=path),),
    )
    folder = tmp_path / "plans"
    folder.mkdir()
    written(folder, CSV)
    file = written(folder, '[route]\nevals = "evals.csv"\n', "assume.toml")

    def found(source):
        return assumptions(source, (lever,)).levers["route"].values["evals"]

    assert found(file) == folder / "evals.csv"
    assert found({"route": {"evals": "evals.csv"}}) == Path("evals.csv")  # of the working directory
    monkeypatch.chdir(folder)
    assert len(read_evals(found("assume.toml")).frame) == len(
        read_evals(found({"route": {"evals": "evals.csv"}})).frame
    )
    assert found({"route": {"evals": str(folder / "evals.csv")}}) == folder / "evals.csv"
    assert found({"route": {}}) is None
    assert assumptions(file, (lever,)).as_dict()["route"]["evals"] == (folder / "evals.csv").as_posix()
    for bad in (3, "", " "):
        with pytest.raises(AssumptionError, match=r"\[route\]: evals must be the path of a file in quotes"):
            found({"route": {"evals": bad}})


def test_names_of_one_model_are_one(tmp_path):
    same = ("gpt-4o-mini", "openai/gpt-4o-mini", "GPT-4o-mini", "gpt-4o-mini-2024-07-18", " gpt-4o-mini ")
    assert {model_key(BOOK, "openai", name) for name in same} == {"gpt-4o-mini"}
    assert model_key(BOOK, "openai", "gpt-4o") != "gpt-4o-mini"
    # models that the book does not know keep their own names; another provider's name stays one
    assert model_key(BOOK, "self-hosted", "vllm/My-Model") == model_key(BOOK, "vllm", "my-model") == "my-model"
    assert model_key(BOOK, "self-hosted", "acme/my-model") == "acme/my-model"
    # two fine-tunes of one model have one price and are two models
    tunes = {model_key(BOOK, "openai", f"ft:gpt-4.1-mini-2025-04-14:{org}::1") for org in ("a", "b")}
    assert len(tunes) == 2

    found = scores(read_evals(written(tmp_path, CSV)), BOOK, [MINI], "request_id")
    assert found["request_id"].to_list() == ["r1", "r2"]
    assert found["evals"].to_list() == [2, 1]
    (said,) = lacking_models(read_evals(written(tmp_path, CSV)), BOOK, [MINI, ("openai", "gpt-5-mini")])
    assert said.startswith(f'{tmp_path}/evals.csv has no score of "gpt-5-mini" (openai). Did you mean "gpt-4o-mini"?')
    assert said.endswith("It has scores of gpt-4o, gpt-4o-mini, gpt-4o-mini-2024-07-18, openai/GPT-4o-mini")


def test_means_are_exact(tmp_path):
    evals = read_evals(written(tmp_path, CSV))
    found = scores(evals, BOOK, [MINI, MINI], "request_id").rows(named=True)
    # 0.9 and 0.8; 1 and 2 pUSD: 1.5 is 2, half even; 10 and 11 tokens: 10.5 is 10
    assert found[0] == {
        "provider": "openai",
        "model": "gpt-4o-mini",
        "request_id": "r1",
        "evals": 2,
        "score_e12": 85 * 10**10,
        "cost_pusd": 2,
        "input_tokens": 10,
        "output_tokens": 6,
        "latency_us": 12_500,
        "is_truncated": True,
    }
    assert (found[1]["cost_pusd"], found[1]["is_truncated"]) == (None, None)
    by_feature = scores(evals, BOOK, [MINI], "feature")
    assert by_feature["feature"].to_list() == ["chat", "tagging"]
    assert by_feature["score_e12"].to_list() == [85 * 10**10, 10**11]


@pytest.mark.parametrize(
    ("given", "reaches"),
    [
        ([0.9], True),
        ([0.9, 0.9, 0.9], True),
        ([0.8, 0.9, 1.0], True),
        ([0.1] * 9 + [8.1], True),
        ([0.7 + 0.2], True),  # 0.8999999999999999 in binary
        ([0.9, 0.899999999999], False),
        ([0.899999999999], False),
        ([1, 1, 0.7], True),
        ([1, 1, 0.699999999998], False),
    ],
)
def test_nine_tenths_reach_nine_tenths(tmp_path, given, reaches):
    found = scores(read_evals(jsonl(tmp_path, *(one(score) for score in given))), BOOK, [MINI], "request_id")
    for threshold in (0.9, Decimal("0.9"), Decimal("0.900000")):
        assert (found["score_e12"][0] >= least_score(threshold)) is reaches


def test_a_threshold_finer_than_scores_is_not_reached_by_less():
    assert least_score(Decimal("0.9000000000001")) == 9 * 10**11 + 1
    assert least_score(0.9) == least_score(Decimal("0.90")) == 9 * 10**11


def test_sums_of_large_scores_are_exact(tmp_path):
    rows = [one("1000000")] * 20 + [
        one("999999.999999999979")
    ]  # their sum is beyond 64 bits, their mean beyond a float
    found = scores(read_evals(jsonl(tmp_path, *rows)), BOOK, [MINI], "request_id")
    assert found["score_e12"].to_list() == [10**18 - 1]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.decimals(-10, 10, places=12), min_size=1, max_size=7),
    st.decimals(-10, 10, places=6),
    st.randoms(use_true_random=False),
)
def test_comparison_is_that_of_the_exact_mean(tmp_path_factory, given_scores, threshold, shuffler):
    folder = tmp_path_factory.mktemp("evals")
    rows = [one(str(score)) for score in given_scores]
    found = scores(read_evals(jsonl(folder, *rows)), BOOK, [MINI], "request_id")
    mean = sum(map(Fraction, given_scores)) / len(given_scores)
    assert (found["score_e12"][0] >= least_score(threshold)) is (mean >= threshold)
    assert found["score_e12"][0] >= least_score(min(given_scores))
    shuffler.shuffle(rows)
    assert scores(read_evals(jsonl(folder, *rows)), BOOK, [MINI], "request_id").equals(found)


def test_on_an_engine(tmp_path):
    evals = read_evals(written(tmp_path, CSV))
    with duckdb.connect() as connection:
        engine = DuckDBEngine(connection)
        connection.execute("create table requests as select 'r1' as request_id, 'chat' as feature")
        register(engine, evals, BOOK, [MINI])
        by_request = engine.fetch(
            "select request_id, score_e12 from evals_by_request where model = 'gpt-4o-mini' order by 1"
        )
        assert by_request.rows() == [("r1", 85 * 10**10), ("r2", 10**12)]
        assert engine.fetch("select feature from evals_by_feature order by 1").rows() == [("chat",), ("tagging",)]
        register(engine, evals, BOOK, [("openai", "gpt-5-nano")], "own")
        types = engine.fetch("select * from own_by_request")
        assert types.schema == scores(evals, BOOK, [MINI], "request_id").schema
        assert len(types) == 0
        assert unmatched(engine, evals) == (1, ("tagging",))


def test_scales(tmp_path):
    assert scale_note(read_evals(written(tmp_path, CSV)), 0.9) == ""
    percents = read_evals(jsonl(tmp_path, one(95), one(10)))
    assert scale_note(percents, 90) == ""
    assert "reach 95, but min_quality is 0.9" in scale_note(percents, Decimal("0.9"))
