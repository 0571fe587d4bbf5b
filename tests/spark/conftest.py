"""One Spark session for all tests on two engines; without pyspark or Java 17 they skip, saying why."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from spark.twin import RAN, Twins, java_version, local_session

HERE = Path(__file__).parent


def why_not(config: pytest.Config) -> str | None:
    """Say why tests on Spark do not run here, or None."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        return 'Spark is not installed: pip install "tenfold[spark]", or `make spark`'
    found = java_version()
    if found is None or found < 17:
        return (
            f"Spark needs Java 17 or newer on PATH or in JAVA_HOME; {'none' if found is None else f'Java {found}'} here"
        )
    asked = (HERE.name, str(HERE))
    if config.option.markexpr or any(name in str(argument) for argument in config.args for name in asked):
        return None if "spark" in f"{config.option.markexpr} {config.args}" else "run by `make spark`"
    return "run by `make spark`"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = [item for item in items if HERE in item.path.parents]
    reason = why_not(config) if here else None
    for item in here:
        item.add_marker(pytest.mark.spark)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def spark():
    """The session that all tests share (each laid log takes a new one of its own inside it)."""
    session = local_session()
    yield session
    session.stop()


@pytest.fixture
def twins(spark, tmp_path):
    """Both engines over one log: ``log.on(twins)``, or ``twins.everywhere(monkeypatch)``."""
    return Twins(spark, tmp_path / "laid")


@pytest.fixture(scope="session")
def ran():
    """Steps that ran on both engines so far, by name of their file."""
    return RAN
