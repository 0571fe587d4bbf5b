"""Budgets and burn: the file read strictly, a burn worked by hand, what follows from scaling and order."""

import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import bills
import pytest

from tenfold.analysis.budgets import Range, burn, read_budgets, sentences
from tenfold.errors import AssumptionError
from tenfold.ledger import Window
from tenfold.money import PUSD_PER_USD, usd_text


# m1: 1 USD per million input tokens, so `usd` dollars are usd x 1e6 tokens
def spend(day, team, usd, hour=12):
    return {
        "request_id": f"{day}-{team}-{usd}-{hour}", "ts": f"{day}T{hour:02d}:00:00", "team": team,
        "input_tokens": int(Decimal(str(usd)) * 1_000_000), "output_tokens": 0,
    }  # fmt: skip


def quarter(requests, folder, zone="UTC"):
    place = __import__("zoneinfo").ZoneInfo(zone)
    window = Window(datetime(2026, 7, 1, tzinfo=place), datetime(2026, 10, 1, tzinfo=place), zone)
    return bills.ledger_of(requests, folder).within(window)


@pytest.fixture(scope="module")
def spent(tmp_path_factory):
    """The quarter of `SPENT`."""
    return quarter(SPENT, tmp_path_factory.mktemp("budgets"))


def file_of(folder, text):
    path = folder / "budgets.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


HAND = "owner,month,usd\nsearch,2026-07,310\nsearch,2026-08,620\n*,2026-07,1240\nops,2026-07,50\n"
# until 10 July: search 10 x 20 = 200 on days 1-10, agents 5 on the 3rd
SPENT = [spend(f"2026-07-{day:02d}", "search", 20) for day in range(1, 11)] + [spend("2026-07-03", "agents", 5)]


def test_a_burn_worked_by_hand(tmp_path, spent):
    found = burn(spent, file_of(tmp_path, HAND))
    search = found.owners[0]
    # 310 + 620 for July and August, 62 days; ten of July's 31 days are over: 310 x 10/31 = 100
    assert (search.owner, search.budget, search.elapsed_budget) == ("search", 930 * PUSD_PER_USD, 100 * PUSD_PER_USD)
    assert (search.spend, search.burn_ratio, search.days, search.all_days) == (200 * PUSD_PER_USD, 2, 10, 62)
    # at 20 a day it is 1240 at the end of August: 310 over
    assert (search.projected, search.overrun) == (Range(*[1240 * PUSD_PER_USD] * 3), 310 * PUSD_PER_USD)
    assert [one.day for one in search.alerts] == [None, None, None]
    july = next(line for line in found.months if (line.owner, line.label) == ("search", "2026-07"))
    # half of 310 is 155: reached with the eighth day's 160; 80 % is 248: not reached
    assert [one.day for one in july.alerts] == [date(2026, 7, 8), None, None]
    assert found.total.spend == 205 * PUSD_PER_USD
    assert repr(found) == "<Burn through 2026-07-10: $205.00 of $1,240.00 (17 %), 2 owners>"
    assert found.total.burn_ratio == Fraction(205, 1240) / Fraction(10, 31)
    assert found.without_budget == (("agents", date(2026, 7, 1), 5 * PUSD_PER_USD),)
    assert found.without_spend == ("ops",)
    assert found.through == date(2026, 7, 10)
    assert "the owners' budgets together are $260.00 less than that of the whole" in found.notes
    assert any("search ends $310.00 over its budget at the pace so far" in line for line in sentences(found))


def test_a_forecast_takes_the_place_of_the_pace(tmp_path, spent):
    ahead = {"search": Range(500 * PUSD_PER_USD, 700 * PUSD_PER_USD, 900 * PUSD_PER_USD)}
    search = burn(spent, file_of(tmp_path, HAND + "search,2026-09,0\n"), ahead=ahead).owners[0]
    assert search.projected == Range(700 * PUSD_PER_USD, 900 * PUSD_PER_USD, 1100 * PUSD_PER_USD)
    assert search.overrun == -30 * PUSD_PER_USD


def test_days_of_a_month_sum_to_its_budget_to_the_pusd(tmp_path, spent):
    path = file_of(tmp_path, "owner,month,usd\nsearch,2026-07,0.000000000100\n")
    budgets = read_budgets(path)
    whole, parts = spent, 0
    for first, last in ((1, 8), (8, 20), (20, 32)):
        window = Window(bills.utc(2026, 7, first), bills.utc(2026, 7, 1) + timedelta(days=last - 1))
        parts += burn(whole.within(window), budgets).owners[0].budget
    assert parts == 100


def test_without_a_budget_of_the_whole_all_spend_is_held_against_the_owners_sum(tmp_path, spent):
    """July: search 200 and agents 5 against search's 310: the 5 count, as nobody granted them."""
    found = burn(spent, file_of(tmp_path, "owner,month,usd\nsearch,2026-07,310\n"))
    assert (found.total.budget, found.total.spend) == (310 * PUSD_PER_USD, 205 * PUSD_PER_USD)
    assert found.total.burn_ratio == Fraction(205, 100)
    assert found.owners[0].spend == 200 * PUSD_PER_USD
    (note,) = [note for note in found.notes if "no budget for the whole" in note]
    assert "$5.00 of it has no budget (agents)" in note
    # ends at the pace of all spend: 205 x 31 / 10
    assert found.total.projected.mid == Fraction(205 * 31, 10) * PUSD_PER_USD
    # August has spend and no budget of any owner: named, and in no line
    more = [*SPENT, spend("2026-08-02", "search", 7)]
    found = burn(quarter(more, tmp_path), file_of(tmp_path, "owner,month,usd\nsearch,2026-07,310\n"))
    assert (found.owners[0].spend, found.total.spend) == (200 * PUSD_PER_USD, 205 * PUSD_PER_USD)
    assert ("search", date(2026, 8, 1), 7 * PUSD_PER_USD) in found.without_budget


def test_the_sum_of_owners_is_over_where_spend_without_a_budget_is(tmp_path):
    """A company of 2,500 with budgets of 1,848 for one team that spends 1,245: 652 over, not 603 left."""
    made = [spend("2026-07-31", "search", 1245), spend("2026-07-02", "agents", 1000), spend("2026-07-03", None, 255)]
    found = burn(quarter(made, tmp_path), file_of(tmp_path, "owner,month,usd\nsearch,2026-07,1848\n"))
    assert found.total.overrun == 652 * PUSD_PER_USD
    assert found.owners[0].overrun == -603 * PUSD_PER_USD
    assert (found.is_summed, found.ungranted) == (True, 1255 * PUSD_PER_USD)
    whole = burn(quarter(made, tmp_path), file_of(tmp_path, "owner,month,usd\nsearch,2026-07,1848\n*,2026-07,2000\n"))
    assert (whole.total.overrun, whole.is_summed, whole.ungranted) == (500 * PUSD_PER_USD, False, 0)
    assert any("$1,255.00 of it has no budget (agents, unallocated)" in note for note in found.notes)


def test_months_of_owners_that_differ_hold_all_spend_of_each(tmp_path):
    """search has July, ops August: what search spends in August is spend of August without a budget."""
    made = [
        spend("2026-07-01", "search", 10),
        spend("2026-09-30", "ops", 50),
        spend("2026-08-31", "search", 20),
        spend("2026-08-02", "ops", 1),
    ]
    text = "owner,month,usd\nsearch,2026-07,30\nops,2026-08,5\n"
    found = burn(quarter(made, tmp_path), file_of(tmp_path, text))
    assert (found.total.budget, found.total.spend) == (35 * PUSD_PER_USD, 31 * PUSD_PER_USD)
    assert sum(line.spend for line in found.owners) == 11 * PUSD_PER_USD
    assert any("$20.00 of it has no budget (search)" in note for note in found.notes)


def test_a_forecast_of_the_whole_is_that_of_all_spend(tmp_path, spent):
    ahead = {"*": Range(1, 2, 3), "search": Range(500, 700, 900)}
    path = file_of(tmp_path, "owner,month,usd\nsearch,2026-07,310\n")
    # days ahead of months without any budget are not of the whole's: the pace goes on instead
    assert burn(spent, path, ahead=ahead).total.ahead is None
    whole = "owner,month,usd\nsearch,2026-07,310\nsearch,2026-08,1\nsearch,2026-09,1\n"
    assert burn(spent, file_of(tmp_path, whole), ahead=ahead).total.ahead == Range(1, 2, 3)


def test_a_budget_of_nothing_and_a_team_that_nobody_owns(tmp_path):
    requests = [*SPENT, spend("2026-07-04", None, 3)]
    found = burn(
        quarter(requests, tmp_path), file_of(tmp_path, "owner,month,usd\nsearch,2026-07,0\nunallocated,2026-07,6\n")
    )
    nothing = next(line for line in found.owners if line.owner == "search")
    assert (nothing.burn_ratio, nothing.used_ratio) == (None, None)
    assert nothing.alerts[2].day == date(2026, 7, 1)
    nobody = next(line for line in found.owners if line.owner == "unallocated")
    assert nobody.spend == 3 * PUSD_PER_USD


@pytest.mark.full
def test_days_are_those_of_the_report_zone(tmp_path):
    late = [spend("2026-06-30", "search", 1, hour=23), spend("2026-07-05", "search", 1)]
    text = file_of(tmp_path, "owner,month,usd\nsearch,2026-07,310\n")
    assert burn(quarter(late, tmp_path), text).owners[0].spend == PUSD_PER_USD
    assert burn(quarter(late, tmp_path, "Europe/Berlin"), text).owners[0].spend == 2 * PUSD_PER_USD


@pytest.mark.full
def test_scaling_and_order_change_nothing_else(tmp_path, spent):
    rng = random.Random(7)
    budgets = file_of(tmp_path, HAND)
    base = burn(spent, budgets)
    tripled = [{**one, "input_tokens": 3 * one["input_tokens"]} for one in rng.sample(SPENT, len(SPENT))]
    lines = "".join(f"{one.owner},{one.month:%Y-%m},{usd_text(3 * one.pusd)}\n" for one in read_budgets(budgets).rows)
    scaled = burn(quarter(tripled, tmp_path), file_of(tmp_path, "owner,month,usd\n" + lines))
    for one, other in zip(base.lines, scaled.lines, strict=True):
        assert (other.spend, other.overrun, other.burn_ratio) == (3 * one.spend, 3 * one.overrun, one.burn_ratio)
        assert other.alerts == one.alerts


def test_amounts_are_exact_and_names_are_text(tmp_path):
    text = (
        '\ufeffMonth, Owner ,USD,note\r\n2026-07,=1+1,"$1,234,567.000000000001",x\r\n\r\n'
        '2026-08,"a\nb",0.1,\r\n2026-07,TOTAL,5,\r\n2026-07,\u202eevil,1e0,\r\n'
    )
    with pytest.raises(AssumptionError, match=r"line 7, column usd: '1e0' is no amount"):
        read_budgets(file_of(tmp_path, text))
    rows = read_budgets(file_of(tmp_path, text.replace("1e0", "1"))).rows
    assert [(one.owner, one.pusd) for one in rows] == [
        ("=1+1", 1_234_567_000_000_000_001), ("a\nb", 10**11), ("*", 5 * PUSD_PER_USD), ("\u202eevil", PUSD_PER_USD),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: unknown column ''"),
        ("owner,month,usd\n", "no budget in it"),
        ("owner;month;usd\na;2026-07;1\n", "separate the columns by commas"),
        ("owner,month\na,2026-07\n", "no column usd"),
        ("owner,month,usdd\n", 'Did you mean "usd"'),
        ("owner,month,usd,usd\n", "twice"),
        ("owner,month,usd\na,2026-7,1\n", "line 2, column month: '2026-7' is no month; write it like 2026-07"),
        ("owner,month,usd\na,Jul-26,1\n", "column month"),
        ("owner,month,usd\na,2026-13,1\n", "column month"),
        ("owner,month,usd\n,2026-07,1\n", "column owner: empty"),
        ("owner,month,usd\na,2026-07,-1\n", "column usd"),
        ("owner,month,usd\na,2026-07,nan\n", "column usd"),
        ("owner,month,usd\na,2026-07,12,000\n", 'line 2: 4 cells where the header has 3; an amount with'),
        ('owner,month,usd\na,2026-07,"1.234,56"\n', "with a point before the cents"),
        ('owner,month,usd\na,2026-07,"12,00"\n', "column usd"),
        ("owner,month,usd\na,2026-07,0.0000000000001\n", "column usd"),
        ("owner,month,usd\n*,2026-07,1\ntotal,2026-07,2\n", "line 3, column owner: 'total' has a budget for"),
        ('owner,month,usd\na,2026-07,"1\n', "line 2: no CSV"),
        (b"owner,month,usd\n\xff,2026-07,1\n", "byte 16 is not UTF-8"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path, text, said):
    path = file_of(tmp_path, text)
    with pytest.raises(AssumptionError) as error:
        read_budgets(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_a_missing_file_and_a_window_without_bounds(tmp_path, spent):
    with pytest.raises(AssumptionError, match=r"nope\.csv: no such file"):
        read_budgets(tmp_path / "nope.csv")
    with pytest.raises(AssumptionError, match="against a window"):
        burn(spent.within(Window()), file_of(tmp_path, HAND))


def test_a_budget_of_one_month_is_not_charged_with_what_comes_after(tmp_path):
    """July is over and under its budget; the forecast of August and September is no part of it."""
    ledger = quarter([spend(f"2026-07-{day:02d}", "a", 1) for day in range(1, 32)], tmp_path)
    found = burn(ledger, file_of(tmp_path, "owner,month,usd\na,2026-07,40\n"), through=date(2026, 8, 8),
                 ahead={"a": Range(*[50 * PUSD_PER_USD] * 3)})  # fmt: skip
    (line,) = found.owners
    assert line.ahead is None
    assert line.overrun == -9 * PUSD_PER_USD
