"""The public validator (focus-validator 2.2.1), where TENFOLD_FOCUS_VALIDATOR names a Python that has it."""

import os
import subprocess

import pytest
from focus_rows import CALL

CRITERIA = (
    "ACCOUNT_NAMING_SUPPORTED,MULTIPLE_PRICING_CATEGORIES_SUPPORTED,MULTIPLE_SUB_ACCOUNT_TYPES_SUPPORTED,"
    "MULTIPLE_BILLING_ACCOUNT_TYPES_SUPPORTED,NEGOTIATED_PRICING_SUPPORTED,PUBLIC_PRICE_LIST_SUPPORTED,"
    "USAGE_MEASUREMENT_SUPPORTED,UNIT_PRICING_SUPPORTED,SUB_ACCOUNT_SUPPORTED,"
    "BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED,RESOURCE_TYPE_ASSIGNMENT_SUPPORTED,"
    "PRICING_BILLING_CURRENCY_DIFFERENCES_SUPPORTED,REGION_SUPPORTED,TAGGING_SUPPORTED"
)
# Both unconditional in its rules of 1.2: InvoiceId must be null, and must not be.
CONTRADICTORY = {"InvoiceId-C-005-C", "InvoiceId-C-004-C"}


@pytest.mark.skipif("TENFOLD_FOCUS_VALIDATOR" not in os.environ, reason="TENFOLD_FOCUS_VALIDATOR names no python")
@pytest.mark.parametrize("criteria", ["", CRITERIA])
def test_the_public_validator_finds_nothing_but_its_contradiction(exported, criteria):
    calls = [{**CALL, "org": "acme", "team": "search", "region": None}, {**CALL, "project": "p", "web_searches": 2}]
    exported(calls)
    python = os.environ["TENFOLD_FOCUS_VALIDATOR"]
    where = "import focus_validator, pathlib; print(pathlib.Path(focus_validator.__file__).parents[1])"
    place = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    command = [python, "-m", "focus_validator.main", "--data-file", str(exported.path), "--block-download"]
    more = ["--applicability-criteria", criteria] if criteria else []
    done = subprocess.run(
        [*command, "--validate-version", "1.2.0.1", *more], capture_output=True, text=True, check=False, cwd=place
    )
    failed = {line.split()[1].rstrip(":") for line in done.stdout.splitlines() if ": FAIL" in line}
    assert "Total:" in done.stdout, done.stderr[-500:]
    assert failed <= CONTRADICTORY, done.stdout[-2000:]
