"""The predicate of an assumptions table: what it may say, what is refused and where."""

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.errors import AssumptionError
from tenfold.levers.where import check, check_shared, named_values
from tenfold.store import schema

PLACE = "assume.toml: [batch_api] where"

ALLOWED = [
    "true",
    "feature in ('nightly', 'weekly')",
    "FEATURE = 'a'",
    "requests.model like 'gpt-%' and not is_stream",
    "model not like 'a%' or model ilike 'B%' or model ~ '^c'",
    "input_tokens between 1 and 2",
    "input_tokens + output_tokens > 3 * 4 - 1",
    "is_stream is null or team is not null",
    "is_stream",
    "coalesce(team, '') = '' and nullif(team, 'x') is distinct from 'y'",
    "tags['job'] = 'nightly'",
    "element_at(tags, 'job')[1] = 'nightly'",
    "list_contains(flags, 'coerced')",
    "extract(hour from ts) < 6 and date_trunc('day', ts) = timestamp '2026-06-01'",
    "ts > timestamp '2026-06-01' + interval 1 day",
    "cast(ts as date) = date '2026-06-01'",
    "case when team = 'a' then true else false end",
    "starts_with(lower(model), 'gpt') and length(model) > 3 and contains(model, 't')",
    "feature = 'a; drop table requests; -- not a comment /* nor this'",
    "feature = 'it''s'",
    "feature\n  = 'é'",
    "(true)",
]

REFUSED = [
    ("true) or (true", 'near ")"', 5),
    ("true; drop table requests", "semicolon", 5),
    ("true;", "semicolon", 5),
    ("feature = 'x' -- and more", "comment", 15),
    ("true /* more */", "comment", 6),
    ("exists (select 1)", "subquery", 1),
    ("feature in (select team from requests)", "subquery", 12),
    ("row_number() over () = 1", "window function", 1),
    ("sum(input_tokens) over () > 1", "window function", 1),
    ("sum(input_tokens) > 1", '"sum"', 1),
    ("feature = $1", "parameter", 11),
    ("feature = ?", "parameter", 11),
    ("read_text('notes.txt') = ''", '"read_text"', 1),
    ("getenv('HOME') = 'x'", '"getenv"', 1),
    ("current_setting('threads') = '1'", '"current_setting"', 1),
    ("ts < now()", '"now"', 6),
    ("random() < 0.5", '"random"', 1),
    ("true union select true", 'near "union"', 6),
    ("true order by 1", 'near "order"', 6),
    ("true limit 1", 'near "limit"', 6),
    ("true group by model", 'near "group"', 6),
    ("true qualify true", 'near "qualify"', 6),
    ("columns('.*') is null", "star", 1),
    ("main.lower(model) = 'x'", '"lower"', 1),
    ("model collate nocase = 'x'", "collation", 1),
    ("list_contains(flags, 'é') and featur = 'x'", '"featur"', 31),
    ("price_key = 1", '"price_key"', 1),
    ("other.feature = 'x'", '"other.feature"', 1),
    ("try(feature = 'x')", "OPERATOR_TRY", 1),
]


@pytest.mark.parametrize("text", ALLOWED)
def test_allowed(text):
    assert check(text, PLACE) == text


@pytest.mark.parametrize(("text", "what", "at"), REFUSED)
def test_refused_with_its_position(text, what, at):
    with pytest.raises(AssumptionError) as error:
        check(text, PLACE)
    message = str(error.value)
    assert message.startswith(f"{PLACE}: ")
    assert what in message
    assert f"(character {at})" in message


@pytest.mark.parametrize(
    ("text", "hint"), [("featur = 'x'", "feature"), ("lowr(model) = 'x'", "lower"), ("Modl = 'x'", "model")]
)
def test_near_match(text, hint):
    with pytest.raises(AssumptionError, match=f'Did you mean "{hint}"'):
        check(text, PLACE)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("feature", "gives VARCHAR"),
        ("1", "gives INTEGER"),
        ("feature = 'x", "unterminated"),
        ("true\x00", "NUL"),
        ("length(input_tokens) > 1", "cannot be used"),
        ("'x' or is_stream", "cannot be used"),
    ],
)
def test_no_boolean_expression(text, what):
    with pytest.raises(AssumptionError, match=what):
        check(text, PLACE)


# Pieces that an attacker would join, and pieces that make joins of them parse.
PIECES = (
    "true ) ( ; -- /* */ or and not 'x' ' \" feature = in select 1 from requests union $1 ? \n E'\\'' $$ null is "
    "case when then else end [ ] , * :: int is_stream lower(model) exists drop table like"
)


def hold_one_expression(text):
    try:
        check(text, PLACE)
    except AssumptionError:
        return
    connection = duckdb.connect()
    connection.execute(schema.ddl("requests"))
    connection.execute("insert into requests (feature) values ('x'), ('y')")
    # Two rows stay two rows, and what stands behind the predicate is still there.
    sql = f"select coalesce((\n{text}\n), false) as is_in, 7 as after from requests"
    assert len(connection.extract_statements(sql)) == 1
    try:
        rows = connection.execute(sql).fetchall()
    except duckdb.ConversionException:  # a cast that the data does not survive is told apart when the log is there
        return
    assert len(rows) == 2
    assert all(isinstance(is_in, bool) and after == 7 for is_in, after in rows)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(PIECES.split(" ")), min_size=1, max_size=7).map(" ".join))
def test_what_passes_is_one_expression_wherever_it_is_put(text):
    hold_one_expression(text)


@pytest.mark.full
@settings(max_examples=800, deadline=None)
@given(st.lists(st.sampled_from(PIECES.split(" ")), min_size=1, max_size=7).map(" ".join))
def test_what_passes_is_one_expression_wherever_it_is_put_at_length(text):
    hold_one_expression(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("feature = agent", "Text stands in single quotes: 'agent'."),
        ("feature in ('a', \"agent\")", "Text stands in single quotes: 'agent'."),
        ("ttft_ms > durtion_ms", 'Did you mean "duration_ms"?'),
    ],
)
def test_text_without_quotes_is_told_from_a_column_misspelt(text, hint):
    with pytest.raises(AssumptionError) as refused:
        check(text, "--where")
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("feature = 'a' and not ('b' = requests.team)", [("feature", "a"), ("team", "b")]),
        ("FEATURE in ('a', 'b') or model not in ('c')", [("feature", "a"), ("feature", "b"), ("model", "c")]),
        ("feature not in ('a', 'b') or team <> 'c'", [("feature", "a"), ("feature", "b"), ("team", "c")]),
        ("feature like 'a' or lower(feature) = 'a' or feature = team", []),
        ("attempt = 1 or ts = '2026-01-01' or feature in ('a', team)", []),
    ],
)
def test_values_named_outright(text, values):
    assert named_values(check(text, "x")) == values


@pytest.mark.parametrize(
    "text",
    [
        "feature in ('faq', 'chat') and not is_stream",
        "ts >= timestamp '2026-01-01' + interval '1' day and ts::date <> date '2026-02-01'",
        "extract(hour from ts) between 8 and 17 or tags['k'] = 'say \"hi\"'",
        "team like 'a%' and coalesce(user_id, '') <> '' and input_tokens / 2 > 5.5",
    ],
)
def test_shared_words_are_taken_on_every_engine(text):
    check_shared(check(text, "here"), "here", "Spark")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dayofweek(ts) in (0, 6)", 'function "dayofweek"'),  # 0 to 6 here, 1 to 7 there
        ("date_part('dow', ts) = 1", 'function "date_part"'),
        ("concat(team, 'x') = 'x'", 'function "concat"'),  # NULL is passed over here alone
        ("cast(duration_ms as integer) = 3", "a cast"),  # rounds here, cuts there
        ("flags[1] = 'coerced'", "a place in a list"),  # from 1 here, from 0 there
        ("\"team\" = 'a'", "a name in double quotes"),
    ],
)
def test_words_that_mean_something_else_elsewhere_are_refused(text, said):
    with pytest.raises(AssumptionError, match="Spark") as raised:
        check_shared(check(text, "here"), "here", "Spark")
    assert said in str(raised.value)
