"""Object stores, against an S3-compatible server in this process."""

from __future__ import annotations

import gzip
import json
import sys
import traceback

import pytest
from log_files import chat, counted, write
from servers import SECRETS, command

from tenfold.extras import MissingExtraError
from tenfold.logs import load
from tenfold.logs.sources import Known, SourceError, cloud
from tenfold.logs.sources.base import scrubbed
from tenfold.store.database import Store


def lines(*numbers):
    return "".join(json.dumps(chat(number)) + "\n" for number in numbers).encode()


def gets(bucket):
    return sorted(
        path.split("/", 2)[2] for how, path, query in bucket.asked if how == "GET" and "list-type" not in query
    )


def keys(url):
    return [found.key for found in cloud.find(url)]


def is_empty(db):
    """No rows, in whatever a load that was refused has left."""
    if not db.exists():
        return True
    with Store(db).reading() as connection:
        return connection.execute("FROM requests UNION ALL BY NAME FROM loads").fetchall() == []


def files_of(log):
    return sorted(set(log.requests["source_file"]))


def test_a_pattern_loads_what_matches_under_the_urls(bucket):
    bucket.put("prod/a.jsonl.gz", gzip.compress(lines(1, 2)))
    bucket.put("prod/deep/er/b.jsonl.gz", gzip.compress(lines(3)))
    bucket.put("prod/c.jsonl", lines(4))
    bucket.put("other/d.jsonl.gz", gzip.compress(lines(5)))
    log = load(bucket.url("prod/**/*.jsonl.gz"))
    assert counted(log) == (3, 0, 0, 0)
    assert log.summary["files"] == 2
    assert gets(bucket) == ["prod/a.jsonl.gz", "prod/deep/er/b.jsonl.gz"]
    assert sorted(log.requests.select("source_file", "source_line", "request_id").rows()) == [
        (bucket.url("prod/a.jsonl.gz"), 1, "chatcmpl-1"),
        (bucket.url("prod/a.jsonl.gz"), 2, "chatcmpl-2"),
        (bucket.url("prod/deep/er/b.jsonl.gz"), 1, "chatcmpl-3"),
    ]
    assert keys(bucket.url("prod/*.jsonl.gz")) == ["prod/a.jsonl.gz"]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("*", "a1 b]"),
        ("**", "a1 b] d/a1 d/e/a2"),
        ("**/a?", "a1 d/a1 d/e/a2"),
        ("d/**", "d/a1 d/e/a2"),
        ("?/*", "d/a1"),
        ("[ab]1", "a1"),
        ("[!b]?", "a1"),
        ("b]", "b]"),
        (".*", ".h"),
        ("**/.h", ".h d/.h"),
    ],
)
def test_what_patterns_match(pattern, matched):
    # by hand; as glob.glob(recursive=True) does with the same files
    keys = ["a1", "b]", "d/a1", "d/e/a2", ".h", "d/.h"]
    assert " ".join(key for key in keys if cloud._matcher(pattern)(key)) == matched


def test_one_object_and_a_prefix(bucket):
    bucket.put("x/a b+c%&#=é.jsonl", lines(1))
    bucket.put("x/.hidden/b.jsonl", lines(2))
    bucket.put("x/folder/", b"")
    one = bucket.url("x/a b+c%&#=é.jsonl")
    assert files_of(load(one)) == [one]
    for url in (one, bucket.url("x/"), bucket.url("x"), f"s3://{bucket.name}", f"s3://{bucket.name}/"):
        assert keys(url) == ["x/a b+c%&#=é.jsonl"]


@pytest.mark.full
def test_local_files_and_objects_go_together(bucket, tmp_path):
    bucket.put("a.jsonl", lines(1, 2))
    log = load([bucket.url("a.jsonl"), write(tmp_path / "b.jsonl", [chat(2), chat(3)]), bucket.url("*")])
    assert counted(log) == (3, 1, 0, 0)
    assert log.summary["files"] == 2


def test_only_new_versions_are_fetched(bucket, tmp_path):
    db = tmp_path / "u.duckdb"
    bucket.put("day/1.jsonl", lines(1))
    bucket.put("day/2.jsonl", lines(2))
    assert counted(load(bucket.url("day/*"), db=db)) == (2, 0, 0, 0)
    bucket.asked.clear()
    again = load(bucket.url("day/*"), db=db)
    assert (counted(again), again.summary["files"], gets(bucket)) == ((0, 2, 0, 0), 2, [])
    # one grew, one is new
    bucket.put("day/2.jsonl", lines(2, 3))
    bucket.put("day/3.jsonl", lines(4))
    assert counted(load(bucket.url("day/*"), db=db)) == (2, 2, 0, 0)
    assert gets(bucket) == ["day/2.jsonl", "day/3.jsonl"]
    # other settings are another reading
    plain = {"format": None, "map": None, "zone": None, "set": {}}
    (first,) = cloud.find(bucket.url("day/1.jsonl"))
    for wanted, is_known in (
        ({}, True),
        ({"format": "openai_chat"}, True),
        ({"format": "tenfold_rows"}, False),
        ({"set": {"team": "x"}}, False),
        ({"zone": "UTC"}, False),
    ):
        assert (Known(db, plain | wanted).load(first.name, first.version) == 1) == is_known, wanted
    # and the same bytes under another tag are known by their hash
    with Store(db).writing() as connection:
        connection.execute("UPDATE loads SET version = 'other'")
    bucket.asked.clear()
    assert counted(load(bucket.url("day/3.jsonl"), db=db)) == (0, 1, 0, 0)
    assert gets(bucket) == ["day/3.jsonl"]


def test_a_listing_of_several_pages_is_whole(bucket):
    bucket.fail("", 2)
    for number in range(5):
        bucket.put(f"p/{number}.jsonl", lines(number))
    assert keys(bucket.url("p/*")) == [f"p/{number}.jsonl" for number in range(5)]
    assert sum("list-type" in query for _, _, query in bucket.asked) == 3


def test_a_listing_of_more_than_a_thousand_is_whole(bucket):
    for number in range(1003):
        bucket.put(f"p/{number:04}", b"{}")
    assert keys(bucket.url("p/*")) == [f"p/{number:04}" for number in range(1003)]


def test_files_are_gone_once_they_are_staged(bucket, tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    for number in range(9):
        bucket.put(f"p/{number}.jsonl", lines(number))
    most = []
    load(bucket.url("p/*"), progress=lambda *_: most.append(len([f for f in folder.rglob("*") if f.is_file()])))
    assert len(most) >= 9
    assert max(most) <= 3  # the one that is read and two ahead
    assert not list(folder.iterdir())


def refused(place, db):
    with pytest.raises(SourceError) as caught:
        load(place, db=db)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_what_cannot_be_read_is_a_clear_error_and_loads_nothing(bucket, tmp_path):
    db = tmp_path / "u.duckdb"
    bucket.put("p/0.jsonl", lines(0))
    bucket.put("p/1.jsonl", lines(1) * 1000)
    one = bucket.url("p/1.jsonl")
    bucket.fail("p/1.jsonl", "denied")
    assert refused(bucket.url("p/*"), db) == (
        f"{one}: access denied. Check the credentials in the environment, and that they may list and read there"
    )
    bucket.fail("p/1.jsonl", "cut")
    assert refused(bucket.url("p/*"), db).startswith(f"{one}: the connection was cut before all was read.")
    bucket.faults.clear()
    bucket.fail("", "denied")
    assert refused(bucket.url("p/*"), db).startswith(f"{bucket.url('p/*')}: access denied")
    bucket.faults.clear()
    assert "no such object" in refused(bucket.url("q/*"), db)
    assert "no such object" in refused(bucket.url("q.jsonl"), db)
    assert "there is no such bucket" in refused("s3://no-such-bucket-here/x/*", db)
    assert "there is no such bucket" in refused("s3://no-such-bucket-here/x.jsonl", db)
    assert is_empty(db)


def test_an_object_that_vanishes_or_changes_between_listing_and_reading(bucket, tmp_path, monkeypatch):
    for number in (1, 2):
        bucket.put(f"p/{number}.jsonl", lines(number))
    find = cloud.find

    def found_then(change):
        def late(url):
            objects = find(url)
            change()
            return objects

        return late

    (_, listed) = find(bucket.url("p/*"))
    bucket.put("p/2.jsonl", lines(2, 3))
    read = cloud.fetch(listed, tmp_path, lambda: False)
    assert read.file.read_bytes() == lines(2, 3)
    assert read.version == find(read.name)[0].version != listed.version  # what was read is what is known
    from moto.s3.models import s3_backends

    gone = found_then(lambda: s3_backends["123456789012"]["aws"].delete_object(bucket.name, "p/2.jsonl"))
    bucket.put("p/0.jsonl", lines(9))
    monkeypatch.setattr(cloud, "find", gone)
    assert "there is no such object (any more)" in refused(bucket.url("p/*"), tmp_path / "v.duckdb")
    assert is_empty(tmp_path / "v.duckdb")


def test_a_server_that_is_not_there(bucket, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert "the server cannot be reached" in refused(bucket.url("p/*"), tmp_path / "u.duckdb")
    # keys are signed with, not sent, but what is read and listed would be: plain http stays on this machine
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://storage.invalid")
    assert "plain http is used to this machine alone" in refused(bucket.url("p/*"), tmp_path / "u.duckdb")
    assert not (tmp_path / "u.duckdb").exists()


def test_a_refused_object_leaves_no_database_and_is_named_by_its_url(bucket, tmp_path):
    url = bucket.put("a.jsonl", b'{"foo": 1, "bar": 2}\n')
    with pytest.raises(Exception, match=f"{url}: unknown log format") as caught:
        load(url, db=tmp_path / "u.duckdb")
    assert "/tmp" not in str(caught.value)
    assert not (tmp_path / "u.duckdb").exists()
    bucket.put("b.jsonl", lines(1) + b"broken\n")
    log = load(bucket.url("*"))
    assert counted(log) == (1, 0, 0, 1)
    assert log.rejects["source_file"].to_list() == [bucket.url("b.jsonl")]


@pytest.mark.parametrize(
    "url",
    [
        "s3://KEY:planted-in-url@bucket/a.jsonl",
        "s3://bucket/a.jsonl?X-Amz-Credential=x&X-Amz-Signature=planted-in-url",
        "az://container/a.jsonl?sv=2026&sig=planted-in-url",
        "gs://token-planted-in-url@bucket/a",
        "s3:///planted-in-url",
    ],
)
def test_urls_with_credentials_are_refused_and_not_shown(url):
    with pytest.raises(SourceError) as caught:
        load(url)
    assert "planted-in-url" not in str(caught.value)
    assert url.partition("?")[0] not in str(caught.value)


def test_no_secret_turns_up_anywhere(bucket, tmp_path, capsys, monkeypatch):
    db = tmp_path / "u.duckdb"
    bucket.put("p/a.jsonl", lines(1) + b"broken\n")
    bucket.put("p/b.jsonl", lines(2))
    said = []
    for argv in (["p/*"], ["p/*"]):
        code, out, err = command(
            monkeypatch, capsys, "load", *(bucket.url(one) for one in argv), "--db", db, "--keep-text"
        )
        assert code == 0, err
        said += [out, err]
    for key, how in (("p/b.jsonl", "denied"), ("p/b.jsonl", "cut"), ("", "denied")):
        bucket.faults.clear()
        bucket.fail(key, how)
        with pytest.raises(SourceError) as caught:
            load(bucket.url("p/*"), db=tmp_path / "other.duckdb")
        error = caught.value
        while error is not None:
            said += [str(error), repr(error)]
            error = error.__cause__ or error.__context__
        said += traceback.format_exception(caught.value)
        code, out, err = command(monkeypatch, capsys, "load", bucket.url("p/*"), "--db", tmp_path / "third.duckdb")
        assert code == 1
        assert err.count("\n") == 1
        said += [out, err]
    held = "".join(said).encode() + b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert bucket.name.encode() in held
    for secret in SECRETS.values():
        assert secret.encode() not in held


def test_what_a_library_says_is_scrubbed(monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    text = f"no {SECRETS['AWS_SECRET_ACCESS_KEY']} at\n https://h/x?sig=abc&{SECRETS['AWS_SESSION_TOKEN']} (sic)"
    assert scrubbed(text) == "no *** at the server (sic)"
    assert cloud._reason(ValueError("x")) == "x. Load again when the server is well"


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setattr("tenfold.extras.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"reading s3:// needs obstore.*tenfold\[cloud\]"):
        load("s3://bucket/x.jsonl")


def test_google_and_azure_take_the_same_way(bucket, tmp_path, monkeypatch):
    # Google's listing and reading speak the same dialect, so the same server answers.
    bucket.put("a.jsonl", lines(1))
    monkeypatch.setenv("GOOGLE_BASE_URL", f"http://127.0.0.1:{bucket.server.port}")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    (found,) = cloud.find(f"gs://{bucket.name}/*.jsonl")
    source = cloud.fetch(found, tmp_path, lambda: False)
    assert (source.name, source.file.read_bytes()) == (f"gs://{bucket.name}/a.jsonl", lines(1))
    assert source.version == found.version
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    assert type(cloud._store("az", "container")).__name__ == "AzureStore"
