"""Files appear whole or not at all, and whatever goes wrong names the file that was asked for."""

import errno
from pathlib import Path

import pytest

from tenfold.errors import AssumptionError
from tenfold.files import check_place, in_place
from tenfold.reviewing import rendering


@pytest.mark.parametrize("form", sorted(rendering.FORMS))
def test_a_full_disk_leaves_the_earlier_review_and_nothing_else(tmp_path, monkeypatch, form):
    out = tmp_path / f"r{form}"
    out.write_bytes(b"earlier")

    def full(path, content):
        with path.open("wb") as file:
            file.write(content[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(rendering, "FORMS", dict.fromkeys(rendering.FORMS, lambda _: "the new one"))
    monkeypatch.setattr(rendering.html, "render", lambda *_, **__: "the new one")
    with pytest.raises(OSError, match="No space left") as told:
        rendering.write(None, out)
    assert told.value.filename == str(out)
    assert [one.name for one in tmp_path.iterdir()] == [out.name]
    assert out.read_bytes() == b"earlier"


def test_a_name_as_long_as_names_may_be(tmp_path):
    out = tmp_path / f"{'x' * 251}.md"
    check_place(out)
    with in_place(out) as part:
        part.write_text("it")
    assert [one.name for one in tmp_path.iterdir()] == [out.name]
    longer = tmp_path / f"{'x' * 253}.md"
    with pytest.raises(OSError, match="too long") as told, in_place(longer) as part:
        part.write_text("it")
    assert told.value.errno == errno.ENAMETOOLONG
    assert told.value.filename == str(longer)
    with pytest.raises(OSError, match="too long") as told:
        check_place(longer)
    assert told.value.filename == str(longer)


def test_what_else_fails_inside_keeps_its_own_name(tmp_path):
    with pytest.raises(FileNotFoundError) as told, in_place(tmp_path / "a.md"):
        (tmp_path / "source.csv").read_text()
    assert told.value.filename == str(tmp_path / "source.csv")


def test_no_folder_or_only_one_is_refused(tmp_path):
    for place, says in ((tmp_path / "no" / "a.md", "there is no directory"), (tmp_path, "is a directory")):
        with pytest.raises(AssumptionError, match=says):
            check_place(place)
        with pytest.raises(AssumptionError, match=says), in_place(place):
            pytest.fail("nothing is written")
