"""Archives that expand beyond a bound are refused, before they fill memory or disk."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib

import pytest
import zstandard
from log_files import chat

from tenfold.errors import LogFormatError
from tenfold.logs import files, load

MB = 1 << 20


def packed(kind, pieces):
    if kind == "gzip":
        packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        return b"".join(map(packer.compress, pieces)) + packer.flush()
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join(map(packer.compress, pieces)) + packer.flush()


@pytest.fixture
def _small(monkeypatch):
    monkeypatch.setattr(files, "_EXPANDS_FREELY", MB)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("members", [1, 10])
def test_a_bomb_is_refused_with_the_bound_named(tmp_path, kind, members):
    file = tmp_path / f"a.jsonl.{kind}"
    line = json.dumps(chat(1)).encode() + b"\n"
    file.write_bytes(packed(kind, [line]) + packed(kind, [b" " * (10 * MB // members)]) * members)
    size = file.stat().st_size
    bound = max(MB, 200 * size)
    with pytest.raises(LogFormatError) as caught:
        load(file, db=tmp_path / "u.duckdb")
    text = str(caught.value)
    assert text.startswith(
        f"{file}: the archive's {size:,} bytes expand to more than {bound:,}, the bound: 200 times its"
    )
    assert "max_expansion" in text
    assert not (tmp_path / "u.duckdb").exists()
    # and no more of it is unpacked than the bound and one step
    got = []
    with pytest.raises(LogFormatError):
        got.extend(len(piece) for piece in files.chunks(file))
    assert sum(got) <= bound + 70 * MB


@pytest.mark.parametrize("kind", [pytest.param("gzip", marks=pytest.mark.full), "zstd"])
def test_a_step_gives_no_more_than_it_may(tmp_path, kind):
    file = tmp_path / "a"
    file.write_bytes(packed(kind, [b"\0" * MB] * 100))
    assert max(len(piece) for piece in files.chunks(file)) <= 70 * MB


@pytest.mark.usefixtures("_small")
def test_the_bound_is_set_in_the_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.jsonl.gz"
    line = json.dumps(chat(1)).encode()
    file.write_bytes(gzip.compress(line + b" " * (2 * MB) + b"\n"))
    with pytest.raises(LogFormatError, match="200 times its size"):
        files.scan(file)
    (tmp_path / "tenfold.toml").write_text("max_expansion = 2000\n")
    assert files.scan(file).lines == 1


def test_below_the_free_size_any_ratio_is_taken(tmp_path):
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(chat(1)).encode() + b" " * (3 * MB)))
    assert file.stat().st_size * 200 < 3 * MB
    assert files.scan(file).lines == 1


@pytest.mark.full
@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_real_bomb_is_refused_in_bounded_memory(tmp_path, kind):
    file = tmp_path / "bomb.jsonl"
    line = json.dumps(chat(1)).encode() + b"\n"
    file.write_bytes(packed(kind, [line]) + packed(kind, [b"\0" * MB] * 100) * 15)
    code = (
        "import resource, sys\nfrom tenfold.errors import LogFormatError\nfrom tenfold.logs import load\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    load(sys.argv[1])\nexcept LogFormatError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    said, grown = done.stdout.splitlines()
    assert f"expand to more than {1 << 30:,}" in said
    assert int(grown) * 1024 < 400 * MB
