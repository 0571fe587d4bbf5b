"""The assumptions file: every key is known, every default stated, every refusal names the place."""

from decimal import Decimal

import pytest

from tenfold.errors import AssumptionError
from tenfold.levers import LEVERS, batch_api
from tenfold.levers.assume import assumptions, described
from tenfold.levers.values import Range


def read(tmp_path, text):
    file = tmp_path / "assume.toml"
    file.write_text(text, encoding="utf-8")
    return assumptions(file, LEVERS)


def test_defaults_without_a_file():
    made = assumptions(None, LEVERS)
    assert made.plan == (12, 800 * 10**12, None, ())
    batch = made.levers["batch_api"]
    assert not batch.has_table
    assert batch.where is None
    assert batch.values == {
        "tier": "batch",
        "cache_hit_factor": Range(Decimal(1), Decimal(1), Decimal(1)),
        "expiry_ratio": Range(Decimal(0), Decimal(0), Decimal(0)),
        "provisioned": None,
    }
    assert (batch.effort_days, batch.running_pusd_per_month) == (2, 0)
    assert made.levers["prefix_cache"].values["policy"] == "as_shipped"


def test_every_key(tmp_path):
    made = read(
        tmp_path,
        """
[batch_api]
where = "feature = 'tagging'"
tier = "flex"
cache_hit_factor = [0.3, 0.65, 0.98]
effort_days = 1.5
running_usd_per_month = 12.34
[prefix_cache]
policy = "none"
[plan]
horizon_months = 6
day_rate_usd = 1000
include = ["batch_api"]
exclude = ["prefix_cache"]
""",
    )
    batch = made.levers["batch_api"]
    assert batch.where == "feature = 'tagging'"
    assert batch.values["tier"] == "flex"
    # written decimals stay exact: 0.3 is three tenths, not the float next to it
    assert batch.values["cache_hit_factor"] == Range(Decimal("0.3"), Decimal("0.65"), Decimal("0.98"))
    assert [batch.at(one).number("cache_hit_factor") for one in ("low", "mid", "high")] == [
        Decimal("0.3"),
        Decimal("0.65"),
        Decimal("0.98"),
    ]
    assert batch.has_range
    assert batch.effort_days == Decimal("1.5")
    assert batch.running_pusd_per_month == 12_340_000_000_000
    assert made.plan == (6, 1000 * 10**12, ("batch_api",), ("prefix_cache",))
    assert made.as_dict()["batch_api"]["cache_hit_factor"] == ["0.3", "0.65", "0.98"]
    stated = {one["name"]: (one["value"], one["stated"]) for one in described(batch_api.LEVER, batch)}
    assert stated["tier"] == ("flex", True)
    assert stated["where"] == ("feature = 'tagging'", True)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[batch_ap]\n", r'unknown table \[batch_ap\]. Did you mean "batch_api"'),
        ("[batch_api]\nwher = 'true'\n", r'\[batch_api\]: unknown key "wher". Did you mean "where"'),
        ("[plan]\nhorizon = 3\n", r'\[plan\]: unknown key "horizon". Did you mean "horizon_months"'),
        ("[plan]\nexclude = ['batch']\n", r'\[plan\] exclude: no lever "batch". Did you mean "batch_api"'),
        (
            "[batch_api]\ntier = 'fleks'\n",
            "batch, flex, off_peak, not 'fleks'. Did you mean \"flex\"",
        ),
        ("[batch_api]\ncache_hit_factor = 1.1\n", "cache_hit_factor must lie between 0 and 1"),
        ("[batch_api]\ncache_hit_factor = -0.1\n", "cache_hit_factor must be a number of at least 0"),
        ("[batch_api]\ncache_hit_factor = nan\n", "cache_hit_factor must be a number of at least 0"),
        ("[batch_api]\ncache_hit_factor = 0.1234567\n", "at most 6 decimals"),
        ("[batch_api]\ncache_hit_factor = [0.9, 0.5, 1.0]\n", "in rising order"),
        ("[batch_api]\ncache_hit_factor = [0.5, 1.0]\n", r"a number or \[low, mid, high\] in .* not \[0.5, 1.0\]$"),
        ("[trim]\noutput_cap = 0.8\n", "output_cap must be .* not 0.8$"),
        ("[batch_api]\nwhere = true\n", "where must be a text in quotes"),
        ("[batch_api]\nwhere = \"featur = 'x'\"\n", r"\[batch_api\] where: requests has no column"),
        ("[batch_api]\neffort_days = true\n", "effort_days must be a number"),
        ("[prefix_cache]\npolicy = 'nope'\n", "policy must be one of none, as_shipped"),
        ("[plan]\nhorizon_months = 1.5\n", "horizon_months must be a whole number"),
        ("[plan]\ninclude = 'batch_api'\n", "include must be a list of names"),
        ("batch_api = 3\n", r"batch_api must be a table"),
        ("[batch_api\n", "not valid TOML"),
    ],
)
def test_refused(tmp_path, text, what):
    with pytest.raises(AssumptionError, match=what) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "assume.toml"))


def test_missing_file(tmp_path):
    with pytest.raises(AssumptionError, match="cannot be read"):
        assumptions(tmp_path / "none.toml", LEVERS)
