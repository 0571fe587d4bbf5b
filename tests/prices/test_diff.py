"""What differs between two price books."""

import zipfile
from pathlib import Path

from tenfold.prices import price_book
from tenfold.prices.diff import diff

PRICING = Path(__file__).parents[2] / "pricing"
ENTRY = '[[price]]\nmodel = "{}"\n{}\nsource = "test"\nchecked = 2026-11-29\n'


def folder(path, *entries):
    path.mkdir()
    (path / "acme.toml").write_text('provider = "acme"\n' + "\n".join(ENTRY.format(*entry) for entry in entries))
    return price_book(path)


def test_added_removed_and_changed(tmp_path):
    old = folder(
        tmp_path / "a",
        ("m", "input = 1\ncache_read = 0.1\noutput = 2"),
        ("m", "above_input_tokens = 1000\ninput = 2\noutput = 4"),
        ("gone", "input = 1\noutput = 2"),
    )
    new = folder(
        tmp_path / "b",
        ("m", "input = 1\noutput = 2.5"),
        ("m", "above_input_tokens = 1000\ninput = 2\noutput = 4"),
        ("m", "valid_from = 2027-01-01\ninput = 3\noutput = 4"),
        ("new", 'input = 1\noutput = 2\nservice_tier = "batch"\nhours = ["01:00-02:00"]\nzone = "UTC"'),
    )
    found = diff(old, new).as_dict()
    assert found["card_versions"] == {"a": old.version, "b": new.version}
    where = {"provider": "acme", "model": "m", "service_tier": "standard", "region": None, "window": None}
    assert found["changed"] == [
        {**where, "valid_from": None, "above_input_tokens": 0, "meter": meter, "from_usd": a, "to_usd": b}
        for meter, a, b in (("cache_read", "0.10", None), ("output", "2.00", "2.50"))
    ]
    assert [(one["model"], one["valid_from"], one["window"]) for one in found["added"]] == [
        ("m", "2027-01-01T00:00:00+00:00", None),
        ("new", None, "daily 01:00-02:00 UTC"),
    ]
    assert [(one["model"], one["bands"][0]["rates_usd"]) for one in found["removed"]] == [
        ("gone", {"input": "1.00", "output": "2.00"})
    ]


def test_a_wheel_is_a_book_too(tmp_path):
    wheel = tmp_path / "tenfold-0.0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        for file in PRICING.glob("*.toml"):
            made.write(file, f"tenfold/_shipped/pricing/{file.name}")
    found = diff(price_book(wheel), price_book(PRICING))
    assert not found.added
    assert not found.removed
    assert not found.changed


def test_names_ends_and_minimums_are_differences_too(tmp_path):
    entry = '[[price]]\nmodel = "m"\n{}input = 1\noutput = 1\nsource = "s"\nchecked = 2026-11-29\n'
    alias = '[[region_alias]]\nwords = ["here"]\nregion = ""\nsource = "s"\nchecked = 2026-11-29\n'
    books = []
    for name, text in {
        "a": entry.format('aliases = ["mm"]\nvalid_to = 2026-06-01\nmin_audio_s = 10\n') + alias,
        "b": entry.format('patterns = ["m-*"]\nmin_audio_s = 60\n'),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "acme.toml").write_text('provider = "acme"\n' + text)
        books.append(price_book(tmp_path / name))
    found = diff(*books).as_dict()
    assert {(row["meter"], row["from_usd"], row["to_usd"]) for row in found["changed"]} == {
        ("valid_to", "2026-06-01T00:00:00+00:00", None),
        ("min_audio_s", "10", "60"),
    }
    names = {(row["kind"], row["name"]) for row in found["names"]}
    assert names == {("id", "mm"), ("pattern", "m-*"), ("region", "here")}
