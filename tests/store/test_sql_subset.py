"""The shared SQL steps stay in the subset that DuckDB and Spark both run unchanged."""

import re
from importlib import resources

import pytest
import sqlglot

from tenfold.analysis.efficiency.causes import marks_sql
from tenfold.ledger import metering
from tenfold.prices.meters import meters
from tenfold.store import cells

FILES = sorted(item.name for item in (resources.files("tenfold.store") / "sql").iterdir() if item.name.endswith(".sql"))
# Names that one of the two engines lacks or means differently.
NOT_SHARED = re.compile(
    r"\b(arg_max|epoch|timestampdiff|unix_timestamp|asof|hugeint|exclude|struct|starts_with|json_\w+|listagg|array|sha256|"
    r"sha2|ignore\s+nulls|div)\b|//|<=>|`|\"",
    re.IGNORECASE,
)

WORDS = {
    "priced": metering.pricing_words(meters()),
    "totals": metering.total_words(meters()),
    "cells_grouped": cells.grouping_words(),
    "cells_cube": {"sums": cells.sums()},
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
