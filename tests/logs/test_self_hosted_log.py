"""The generated log of an engine: the same for the same seed, read whole, and busy as its fleet could be."""

import csv
from collections import Counter
from datetime import datetime
from hashlib import sha256

import tenfold as tf
from tenfold._shipped.data.self_hosted import LARGE, SMALL, write_self_hosted


def test_same_seed_same_bytes(tmp_path):
    one, again, other = (
        write_self_hosted(tmp_path / name, seed=seed, days=1).read_bytes()
        for name, seed in (("a", 7), ("b", 7), ("c", 8))
    )
    assert one == again != other
    # pinned: draws use nothing that differs between platforms
    assert sha256(one).hexdigest()[:16] == "eabe74a8ca716adb"


def test_it_is_read_whole_and_makes_sense(tmp_path):
    file = write_self_hosted(tmp_path, days=4)
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    log = tf.load(file, db=tmp_path / "u.duckdb")
    assert (len(log.requests), len(log.rejects)) == (len(rows), 0)
    assert {row["model"] for row in rows} == {SMALL, LARGE}
    for row in rows:
        tokens = [int(row[key]) for key in ("cache_read_tokens", "input_tokens", "output_tokens")]
        assert 0 <= tokens[0] < tokens[1]
        assert tokens[2] >= 1
        assert 0 < int(row["ttft_ms"]) <= int(row["duration_ms"])
    hours = Counter(datetime.fromisoformat(row["ts"]) for row in rows if row["feature"] == "support-chat")
    by_day = Counter(at.day for at in hours.elements() if at.hour == 14)
    assert by_day[5] > 2 * by_day[4]  # the Thursday on which a portal is down
