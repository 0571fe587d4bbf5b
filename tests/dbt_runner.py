"""As much of dbt as the example project needs, on DuckDB: refs, sources, models in order, tests, freshness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import jinja2
import yaml


class Project:
    """A dbt project, run into a database in memory.

    Args:
        folder: The project.
        env: What ``env_var`` finds.
    """

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.env = env
        self.connection = duckdb.connect(":memory:")
        self.models = {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("models/**/*.sql"))}
        self.properties = [yaml.safe_load(file.read_text("utf-8")) for file in sorted(folder.glob("models/**/*.yml"))]
        self.settings = yaml.safe_load((folder / "dbt_project.yml").read_text("utf-8"))
        self.built: list[str] = []

    def render(self, text: str) -> str:
        return (
            jinja2.Environment(undefined=jinja2.StrictUndefined)
            .from_string(text)
            .render(ref=self.ref, source=self.source, env_var=self.env.get)
        )

    def ref(self, name: str) -> str:
        if name not in self.built:
            self.build(name)
        return f'"{name}"'

    def source(self, source: str, table: str) -> str:
        return self.render(self.tables()[source, table]["config"]["meta"]["external_location"])

    def tables(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (one["name"], table["name"]): table
            for held in self.properties
            for one in held.get("sources", ())
            for table in one["tables"]
        }

    def build(self, name: str) -> None:
        (room,) = [file.parent.name for file in self.folder.glob(f"models/*/{name}.sql")]
        kind = self.settings["models"][self.settings["name"]][room]["+materialized"]
        self.connection.execute(f'CREATE {kind} "{name}" AS {self.render(self.models[name])}')
        self.built.append(name)

    def run(self) -> None:
        for name in self.models:
            self.ref(name)

    def tests(self) -> dict[str, int]:
        """Run every test; its name to the rows that fail it."""
        found = {}
        for held in self.properties:
            for model in held.get("models", ()):
                for column in model.get("columns", ()):
                    for test in column["data_tests"]:
                        kind, more = (test, {}) if isinstance(test, str) else next(iter(test.items()))
                        sql = _generic(kind, model["name"], column["name"], more.get("arguments", {}))
                        found[f"{kind} {model['name']}.{column['name']}"] = self._count(sql)
        for file in sorted((self.folder / "tests").glob("*.sql")):
            found[file.stem] = self._count(self.render(file.read_text(encoding="utf-8")))
        return found

    def freshest(self, source: str, table: str) -> Any:
        field = self.tables()[source, table]["config"]["loaded_at_field"]
        return self.rows(f"SELECT max({field}) FROM {self.source(source, table)}")[0][0]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def _count(self, sql: str) -> int:
        return len(self.rows(sql))


def _generic(kind: str, model: str, column: str, arguments: dict[str, Any]) -> str:
    if kind == "not_null":
        return f'SELECT 1 FROM "{model}" WHERE "{column}" IS NULL'
    if kind == "unique":
        return f'SELECT "{column}" FROM "{model}" WHERE "{column}" IS NOT NULL GROUP BY 1 HAVING count(*) > 1'
    assert kind == "accepted_values"
    values = ", ".join(f"'{value}'" for value in arguments["values"])
    return f'SELECT "{column}" FROM "{model}" WHERE "{column}" NOT IN ({values})'
