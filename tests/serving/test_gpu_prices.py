"""GPU prices: the table's hygiene, which entries are in force, and catalogues turned into entries."""

from __future__ import annotations

import tomllib
from datetime import date
from decimal import Decimal

import pytest

from tenfold.errors import NotEvaluable, PriceFileError, ServingError
from tenfold.serving import gpu_price_import
from tenfold.serving.gpu_prices import COMMITMENTS, GpuPrice, gpu_price, gpu_prices, in_force

NOW = date(2026, 11, 30)

SKYPILOT = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
cpu,,0,4,16,0.0992,eu,,
cpu2,,,4.0,16.0,0.2,eu,,
h100_8,H100,8,128,1600,23.60,eu,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]}",10.00
h100_1,H100,1.0,16,200,3.05,us,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]}",
a100,A100,8,128,1600,16.00,eu,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 40960}}]}",
a100l,A100,8,128,1600,32.00,eu,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]}",
v100,V100,8,92,448,6.32,us,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 16384}}]}",
"""
GPUHUNT = """instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,provider
a,eu,23.60,128,1600,8,H100,80,False,nebius
b,eu,1.25,16,200,1,H100,80,True,nebius
c,eu,2.0,16,200,1,H100,94,False,nebius
"""


def test_every_entry_has_a_source_a_day_and_a_plausible_price():
    entries = gpu_prices()
    assert len(entries) >= 60
    assert {one.commitment for one in entries} >= {"on_demand", "spot", "reserved_1y", "contract", "owned"}
    for one in entries:
        assert one.source, one
        assert one.checked <= NOW
        assert (one.valid_from or one.checked) <= one.checked
        assert Decimal("0.1") < one.usd_per_gpu_hour < 20, one
        assert one.provider == one.provider.lower()
    keys = [(e.gpu, e.provider, e.commitment, e.source, e.said, e.usd_per_gpu_hour) for e in entries]
    assert len(set(keys)) == len(keys)


def test_the_figures_of_the_reference():
    # serving.md 9
    for gpu, provider, commitment, usd in (
        ("H100", "nebius", "on_demand", "2.95"), ("H200", "nebius", "spot", "1.45"),
        ("B200", "oci", "on_demand", "14.00"), ("L40S", "aws", "on_demand", "1.861"),
        ("L4", "aws", "on_demand", "0.805"), ("MI355X", "oci", "on_demand", "8.60"),
        ("GH200", "lambda", "on_demand", "2.29"), ("H100", "coreweave", "reserved_1y", "1.79"),
        ("MI325X", "neocloud", "owned", "1.59"),
    ):  # fmt: skip
        assert gpu_price(gpu, commitment, provider, at=NOW).median == Decimal(usd)


def test_contradictions_stay_side_by_side():
    aws = gpu_price("h100-sxm", provider="aws", at=NOW)
    assert [one.usd_per_gpu_hour for one in aws.entries] == [Decimal("6.88"), Decimal("10.08")]
    assert (aws.low, aws.median, aws.high) == (Decimal("6.88"), Decimal("8.48"), Decimal("10.08"))
    # before the cut, the dear one held, and neither of the others was said yet
    assert [one.usd_per_gpu_hour for one in gpu_price("h100-sxm", provider="aws", at=date(2025, 5, 31)).entries] == [
        Decimal("12.29")
    ]


def entry(usd: str, provider: str = "p", source: str = "s", valid_from: date | None = None, valid_to=None) -> GpuPrice:
    return GpuPrice(
        gpu="l4", provider=provider, commitment="spot", usd_per_gpu_hour=Decimal(usd), valid_from=valid_from,
        valid_to=valid_to, source=source, checked=NOW,
    )  # fmt: skip


def test_a_later_entry_of_the_same_source_takes_over():
    early, late = entry("3", valid_from=date(2026, 1, 1)), entry("2", valid_from=date(2026, 6, 1))
    other = entry("9", source="t", valid_from=date(2025, 1, 1))
    both = (early, late, other)
    assert in_force(both, NOW) == (late, other)
    assert in_force(both, date(2026, 3, 1)) == (early, other)
    assert in_force(both, date(2024, 3, 1)) == ()
    ended = entry("4", valid_to=NOW)
    assert in_force((ended,), NOW) == ()


def test_own_prices_join(tmp_path):
    own = tmp_path / "mine.toml"
    text = (
        '[[gpu_price]]\ngpu = "H100"\nprovider = "Mine"\ncommitment = "contract"\nusd_per_gpu_hour = 1.85\n'
        'source = "contract 4711"\nchecked = 2026-11-01\n'
    )
    own.write_text(text, encoding="utf-8")
    assert gpu_price("h100-sxm", "contract", "mine", at=NOW, own=own).median == Decimal("1.85")
    bad = tmp_path / "bad.toml"
    bad.write_text(text.replace("1.85", '"cheap"'), encoding="utf-8")
    with pytest.raises(PriceFileError, match="usd_per_gpu_hour"):
        gpu_prices(bad)


def test_what_is_not_there_is_named():
    with pytest.raises(NotEvaluable, match=r"no spot price of l4 on .* There is: on_demand of aws"):
        gpu_price("l4", "spot")
    with pytest.raises(ServingError, match=r'commitment "reserved" is not known.*Known: on_demand'):
        gpu_price("l4", "reserved")


def test_a_catalogue_of_skypilot(tmp_path):
    path = tmp_path / "vms.csv"
    path.write_text(SKYPILOT, encoding="utf-8")
    found = gpu_price_import.read(path, "Nebius", NOW)
    assert found.format == "skypilot"
    assert found.unknown == {"V100": 1}
    assert [(one.gpu, one.commitment, one.usd_per_gpu_hour, one.note) for one in found.entries] == [
        ("h100-sxm", "on_demand", Decimal("2.95"), "h100_8 in eu"),
        ("h100-sxm", "on_demand", Decimal("3.05"), "h100_1 in us"),
        ("h100-sxm", "spot", Decimal("1.25"), ""),
        ("a100-40", "on_demand", Decimal(2), ""),
        ("a100-80", "on_demand", Decimal(4), ""),
    ]
    # what is printed is what the file takes
    text = "\n".join(gpu_price_import.toml(one) for one in found.entries)
    assert len(tomllib.loads(text)["gpu_price"]) == 5
    own = tmp_path / "own.toml"
    own.write_text(text, encoding="utf-8")
    assert gpu_prices(own)[-5:] == found.entries


def test_a_catalogue_of_gpuhunt(tmp_path):
    path = tmp_path / "catalog.csv"
    path.write_text(GPUHUNT, encoding="utf-8")
    found = gpu_price_import.read(path, None, NOW)
    assert [(one.gpu, one.provider, one.commitment, one.usd_per_gpu_hour) for one in found.entries] == [
        ("h100-sxm", "nebius", "on_demand", Decimal("2.95")),
        ("h100-sxm", "nebius", "spot", Decimal("1.25")),
    ]
    assert found.unknown == {"H100": 1}  # 94 GB: another card of that name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "neither a SkyPilot nor a gpuhunt catalogue"),
        (SKYPILOT.replace("23.60", "dear"), r'vms.csv, line 4: "dear" is no number'),
        (SKYPILOT.replace("3.05", "0"), "line 5: 0 is no price"),
        (SKYPILOT, "line 4: names no provider; say --provider"),
    ],
)
def test_what_a_catalogue_lacks_is_named(tmp_path, text, message):
    path = tmp_path / "vms.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ServingError, match=message):
        gpu_price_import.read(path, None if "provider" in message else "p", NOW)


def test_the_list_of_commitments_is_that_of_the_file():
    assert COMMITMENTS == ("on_demand", "reserved_1y", "reserved_3y", "spot", "contract", "owned")


def test_prices_of_gpus_are_no_part_of_a_card_version():
    from tenfold.prices.files import HOSTING, version_of

    card = [("openai.toml", b"x")]
    assert (
        version_of([*card, *((name, b"y") for name in HOSTING)])
        == version_of(card)
        != version_of([("openai.toml", b"y")])
    )
