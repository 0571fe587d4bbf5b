"""The shared SQL steps stay in the subset that DuckDB and Spark both run unchanged."""

import re
from importlib import resources
from pathlib import Path

import pytest
import sqlglot

from tenfold.analysis.efficiency.causes import marks_sql
from tenfold.ledger import metering
from tenfold.prices.meters import meters
from tenfold.store import cells

FILES = sorted(item.name for item in (resources.files("tenfold.store") / "sql").iterdir() if item.name.endswith(".sql"))
# Names that one of the two engines lacks or means differently: `concat` passes over NULL on DuckDB alone (`||` is the
# same on both), `timezone` is DuckDB's (`from_utc_timestamp` is Spark's, and DuckDBEngine's).
NOT_SHARED = re.compile(
    r"\b(arg_max|epoch\w*|timestampdiff|unix_timestamp|asof|hugeint|exclude|struct|starts_with|json_\w+|to_json|listagg|"
    r"array|sha256|sha2|ignore\s+nulls|div|unnest|generate_subscripts|explode|posexplode|lateral|list_\w+\(|strftime|"
    r"strptime|make_timestamp|timezone|timestamptz|timestamp_ltz|regexp_matches|strlen|nvl|rowid|offset)\b|//|<=>|\\|`|\"|::|"
    # Spark's is in the session's zone
    r"(?<!cast\()(?<!group by )\bdate_trunc\(",
    re.IGNORECASE,
)
# Columns that hold no NULL where they order: all others say where NULLs go, which the engines have at opposite ends.
NEVER_NULL = {
    *(
        "at_ms",
        "at_us",
        "block_id",
        "bucket_ms",
        "cell_id",
        "combo",
        "day",
        "first_tokens",
        "has_list",
        "hour",
        "hour_us",
    ),
    *(
        "is_priced",
        "last_tokens",
        "line",
        "meter_number",
        "model",
        "oldest",
        "period_end",
        "period_start",
        "place",
        "pool",
    ),
    *("price_key", "priced_at", "requests", "rid", "starts_ms", "stretch", "ts", "turn", "world"),
}

WORDS = {
    "priced": metering.pricing_words(meters()),
    "totals": metering.total_words(meters()),
    "cells_grouped": cells.grouping_words((200_000,)),
    "cells_mixed": {"counts": cells.counts()},
    "efficiency_sums": {"names": "team,", "marks": marks_sql()},
    "efficiency_cache": {"names": "team,"},
    "unit_sums": {
        "names": "team,",
        "grouped": "grouping(team) as all_team,",
        "kinds": "p.output_units,",
        "kind_sums": "sum(output_units) as output_units,",
        "sets": "(), (month), (team)",
    },
    "lever_rows": {"joins": "left join judged as j on b.rid = j.rid"},
}


def text(name):
    return (resources.files("tenfold.store") / "sql" / name).read_text()


def body(name):
    return "\n".join(line.split("--")[0] for line in text(name).splitlines())


@pytest.mark.parametrize("name", FILES)
def test_only_shared_names(name):
    found = NOT_SHARED.search(body(name))
    assert found is None, f"{name}: {found and found.group()} is not in the shared subset"


def ordered(sql):
    """List what a text orders by, item by item."""
    sql = re.sub(r"'(?:[^']|'')*'", "''", sql)
    for found in re.finditer(r"\border\s+by\s+", sql, re.IGNORECASE):
        rest, depth, start = sql[found.end() :], 0, 0
        for place, letter in enumerate(f"{rest})"):
            depth += (letter == "(") - (letter == ")")
            if depth < 0 or (depth == 0 and (letter == "," or _ENDS.match(rest, place))):
                yield " ".join(rest[start:place].split())
                start = place + 1
                if letter != ",":
                    break


_ENDS = re.compile(r"\s(rows|range|limit|union)\b", re.IGNORECASE)


def where_nulls_are_open(sql):
    """List what a text orders by without saying where NULLs go, though it may hold some."""
    for item in ordered(sql):
        if re.search(r"\bnulls (first|last)$", item, re.IGNORECASE) or item.isdigit():
            continue
        names = set(
            re.findall(r"[a-z_]\w*", re.sub(r"\w+\.|coalesce\([^()]*\)|\b(cast|as|double|desc|asc)\b", "", item))
        )
        if not names <= NEVER_NULL:
            yield item


@pytest.mark.parametrize("name", FILES)
def test_says_where_nulls_go(name):
    assert list(where_nulls_are_open(body(name).replace("{scope}", ""))) == []


PYTHON = sorted(
    file
    for file in Path(metering.__file__).parents[1].rglob("*.py")
    if not {"logs", "prices", "cli"} & set(file.relative_to(Path(metering.__file__).parents[1]).parts)
)


def test_python_says_where_nulls_go():
    """What modules add to steps: `order by all` takes every column, NULLs and all."""
    found = [file.name for file in PYTHON if re.search(r"order by all(?! nulls)", file.read_text(encoding="utf-8"))]
    assert found == []


def test_python_truncates_times_in_no_zone():
    found = [
        file.name
        for file in PYTHON
        if file.name != "where.py" and re.search(r"(?<!cast\()\bdate_trunc\(", file.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_parses_on_both(name, dialect):
    words = WORDS.get(name.removesuffix(".sql"), {})
    filled = re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), body(name))
    filled = re.sub(r"\{(inner_)?dimensions\}", "team,", filled)
    filled = re.sub(r"\{condition\}|\{where\}", "true", filled)
    filled = re.sub(r"\{\w+\}", "some_view", filled)
    assert len(sqlglot.parse(filled, dialect=dialect)) == 1


@pytest.mark.parametrize("name", FILES)
def test_header_says_what_it_is(name):
    head = [line for line in text(name).splitlines() if line.startswith("--")]
    assert head
    assert any("in:" in line for line in head)
    assert any("out:" in line for line in head)


def test_only_shared_names_in_what_is_filled_in():
    for text in [text for words in WORDS.values() for text in words.values()]:
        assert NOT_SHARED.search(text) is None


def test_the_lint_can_fail():
    assert NOT_SHARED.search("select arg_max(a, b) from t")
    assert NOT_SHARED.search('select "a" from t')
    assert NOT_SHARED.search("select date_trunc('hour', ts) as hour from t")
    assert not NOT_SHARED.search("select cast(date_trunc('hour', ts) as timestamp) as hour from t")
    text = "select row_number() over (partition by a order by team, ts desc rows between 1 preceding and current row)"
    assert list(where_nulls_are_open(f"{text} order by c.user_id nulls last, coalesce(team, ''), 1 limit 3")) == [
        "team"
    ]
