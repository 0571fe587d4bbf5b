"""Settings: what a review calls large, fiscal years, currency; errors name file, key and the way out."""

import pytest

from tenfold.config import Currency, Settings, Thresholds, settings
from tenfold.errors import AssumptionError


def read(tmp_path, text):
    file = tmp_path / "tenfold.toml"
    file.write_text(text)
    return settings(file)


def test_no_file_gives_the_defaults(tmp_path):
    assert settings(tmp_path / "tenfold.toml") == Settings()
    assert Settings().thresholds.budget_alerts == (0.5, 0.8, 1.0)


def test_everything(tmp_path):
    found = read(
        tmp_path,
        """
        report_zone = "Europe/Berlin"
        fiscal_year_start = 4
        budgets = "budgets.csv"
        lock_timeout_s = 5
        [currency]
        code = "EUR"
        per_usd = "0.92"
        source = "a bank, 2026-10-01"
        [thresholds]
        drift = 0.02
        anomaly_k = 6
        budget_alerts = [1, 0.7]
        [[owner]]
        team = "a"
        project = "p"
        """,
    )
    assert found.budgets == str(tmp_path / "budgets.csv")
    assert found.fiscal_year_start == 4
    assert found.currency == Currency("EUR", "0.92", "a bank, 2026-10-01")
    assert found.thresholds == Thresholds(drift=0.02, anomaly_k=6, budget_alerts=(0.7, 1.0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fiscal_year_begin = 4", 'unknown key "fiscal_year_begin". Did you mean "fiscal_year_start"'),
        ("fiscal_year_start = 13", "write a month from 1 to 12"),
        ('fiscal_year_start = "April"', "fiscal_year_start = 'April': write it like 1"),
        ("fiscal_year_start = true", "write it like 1"),
        ("thresholds = 1", "write a table"),
        ("[thresholds]\ndrfit = 1", 'thresholds: unknown key "drfit". Did you mean "drift"'),
        ("[thresholds]\ndrift = -1", "write numbers of at least 0"),
        ("[thresholds]\nbudget_alerts = 1", "budget_alerts = 1: write it like [0.5, 0.8, 1.0]"),
        ('[thresholds]\nbudget_alerts = ["x"]', "write numbers of at least 0"),
        ("[thresholds]\nbudget_alerts = [50, 80]", "budget_alerts = [50, 80]: write shares, 0.5 for 50 %"),
        ("[thresholds]\nbudget_alerts = [0.5, 10.5]", "write shares, 0.5 for 50 %"),
        ("[thresholds]\ndrift = 2", "drift = 2: write a share, 0.02 for 2 %"),
        ("[thresholds]\nexplain = 5.0", "explain = 5.0: write a share, 0.05 for 5 %"),
        ("[thresholds]\nact = 1.5", "act = 1.5: write a share, 0.015 for 1.5 %"),
        ('[currency]\ncode = "EUR"\nper_usd = 0.92', 'per_usd = 0.92: write it like "0.92", in quotes'),
        ("[currency]\ncode = 1", 'code = 1: write it like "EUR"'),
        ("budgets = 3", 'budgets = 3: write it like "budgets.csv"'),
        ("[thresholds]\ndrift = nan", "write numbers of at least 0"),
        ("currency = 'EUR'", "write a table"),
        ("[currency]\ncode = 'euro'\nper_usd = '1'", "ISO 4217"),
        ("[currency]\ncode = 'EUR'\nper_usd = '0'", "its units for one USD"),
    ],
)
def test_bad_values_name_the_key(tmp_path, text, said):
    with pytest.raises(AssumptionError) as raised:
        read(tmp_path, text)
    assert said in str(raised.value)
    assert "tenfold.toml" in str(raised.value)


@pytest.mark.parametrize(
    ("limit", "pool"), [("2GB", "1.33333GB"), ("128MB", "85.3333MB"), ("1.5 GiB", "1GiB"), ("90%", "60%"), ("-1", "-1")]
)
def test_duckdb_gets_two_thirds_of_the_limit(tmp_path, limit, pool):
    assert read(tmp_path, f'memory_limit = "{limit}"').pool == pool


def test_a_limit_that_is_no_size_names_the_file(tmp_path):
    file = tmp_path / "tenfold.toml"
    file.write_text('memory_limit = "lots"\n')
    with pytest.raises(AssumptionError, match=r"tenfold.toml: memory_limit"):
        settings(file)
