"""Where a log is published, and what was done to it since: what cannot be read right is refused."""

import json

import pytest
from published_logs import loaded, rows

import tenfold as tf
from tenfold.errors import StoreError


def test_a_manifest_that_lost_a_day_is_refused(tmp_path):
    out = tmp_path / "out"
    tf.publish(loaded(tmp_path / "log.duckdb", rows()), out)
    manifest = out / "current" / "manifest.json"
    held = json.loads(manifest.read_text())
    held["days"].pop(next(iter(held["days"])))
    manifest.write_text(json.dumps(held))
    with pytest.raises(StoreError, match="changed since it was written"):
        assert tf.attribute(tf.open_log(out)).total_pusd


def test_a_pattern_is_no_place_to_publish_into(tmp_path):
    log = loaded(tmp_path / "log.duckdb", rows(2))
    with pytest.raises(StoreError, match="pattern"):
        tf.publish(log, tmp_path / "st*r")
    tf.publish(log, tmp_path / "star")
    (tmp_path / "star").rename(tmp_path / "sta?")
    with pytest.raises(StoreError, match="pattern"):
        tf.open_log(tmp_path / "sta?")
