"""A bucket and a database of its own for each test that asks for one."""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from servers import ACCOUNT, BACKOFF, SECRETS, Bucket, postgres_served, s3_served


@pytest.fixture(scope="session")
def s3_server():
    pytest.importorskip("moto")
    with s3_served() as served:
        yield served


@pytest.fixture
def bucket(s3_server, monkeypatch, request):
    from moto.s3.models import s3_backends

    from tenfold.logs.sources import cloud

    server, faults, asked = s3_server
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    for name, value in {**SECRETS, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
    monkeypatch.setattr(cloud, "_RETRY", {"max_retries": 1, "retry_timeout": timedelta(seconds=5), "backoff": BACKOFF})
    name = "".join(sign for sign in request.node.name.lower() if sign.isalnum())[:60]  # moto reads no %2D for a hyphen
    s3_backends[ACCOUNT]["aws"].create_bucket(name, "us-east-1")
    found = Bucket(name, server, faults)
    asked.clear()
    found.asked = asked
    yield found
    faults.clear()


@pytest.fixture(scope="session")
def postgres():
    pytest.importorskip("adbc_driver_postgresql")
    folder = Path(tempfile.mkdtemp(prefix="tenfold-postgres-"))
    try:
        with postgres_served(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder)
