"""The same mapping as the load's, written as a script would: line by line in Python, and in Polars."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

COLUMNS = (
    "request_id", "source_format", "source_file", "source_line", "ts", "team", "feature", "provider", "model",
    "service_tier", "operation", "is_stream", "input_tokens", "cache_read_tokens", "cache_write_tokens",
    "input_audio_tokens", "output_tokens", "reasoning_tokens", "output_audio_tokens", "token_source", "status",
    "finish_reason", "is_billable", "flags", "dedup_key", "id_hash", "load_id", "team_logged", "feature_logged",
)  # fmt: skip
TIERS = {"default": "standard", "auto": "standard", "on_demand": "standard"}
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
}
NO_ID = {"", "none", "null", "nil", "nan", "undefined"}


def loop(file: Path, loads: Callable[[bytes], Any]) -> pl.DataFrame:  # noqa: C901, PLR0915 -- as a script is
    """Map line by line in Python to the same columns with the same checks, as a script would do it."""
    found: list[tuple[Any, ...]] = []

    def count(value: Any, flags: list[str]) -> int | None:
        if value is None or (type(value) is int and 0 <= value < 10**9):
            return value
        if isinstance(value, float) and value.is_integer() and 0 <= value < 10**9:
            flags.append("coerced")
            return int(value)
        flags.append("bad_count")
        return None

    def word(value: str | None, words: dict[str, str]) -> str | None:
        lower = value.strip().lower() if value else None
        return words.get(lower, lower) if lower else None

    def named(value: Any) -> str | None:
        return str(value) if value is not None and str(value).strip().lower() not in NO_ID else None

    name = str(file)
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            row, flags = loads(line), list[str]()
            usage, log = row.get("usage") or {}, row.get("_log") or {}
            asked, answered = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details") or {}
            details = asked or {}
            entered, made = count(usage.get("prompt_tokens"), flags), count(usage.get("completion_tokens"), flags)
            cached, written = (
                count(details.get("cached_tokens"), flags),
                count(details.get("cache_write_tokens"), flags),
            )
            heard, said = count(details.get("audio_tokens"), flags), count(answered.get("audio_tokens"), flags)
            thought, total = count(answered.get("reasoning_tokens"), flags), count(usage.get("total_tokens"), flags)
            if asked is not None:
                cached, written = cached or 0, written or 0
            elif usage:
                flags.append("details_missing")
            if entered is not None and (cached or 0) + (written or 0) > entered:
                flags.append("cache_gt_input")
            if (entered is not None and (heard or 0) > entered) or (
                made is not None and (said or 0) + (thought or 0) > made
            ):
                flags.append("media_gt_total")
            if made is not None and (thought or 0) > made:
                flags.append("reasoning_gt_output")
            if None not in {total, entered, made} and total not in {
                entered + made,
                entered + made + (cached or 0) + (written or 0),
            }:
                flags.append("total_mismatch")
            if entered is None and made is None:
                flags.append("usage_missing")
            when = log.get("ts") or row.get("created")
            try:
                ts = datetime.fromtimestamp(float(when), UTC).replace(tzinfo=None)
            except (TypeError, ValueError):
                ts = None
                flags.append("ts_missing" if when is None else "bad_ts")
            failed = row.get("error") is not None or int(row.get("status_code") or 0) >= 400
            meta = row.get("metadata") or {}
            team, feature = (
                meta.get("team") or log.get("team") or None,
                meta.get("feature") or log.get("feature") or None,
            )
            request = named(row.get("id")) or named(log.get("request_id"))
            key = (
                None
                if named(row.get("id")) is None
                else "openai|" + request.replace("\\", "\\\\").replace("|", "\\|").replace("#", "\\#")
            )
            kind = row.get("object")
            reason = row["choices"][0].get("finish_reason") if row.get("choices") else None
            tier = word(row.get("service_tier") or usage.get("service_tier"), TIERS)
            hashed = None if key is None else int.from_bytes(hashlib.md5(key.encode()).digest()[8:], "little")
            found.append(
                (request, "openai_chat", name, number, ts, team, feature, "openai", row.get("model") or None, tier, "chat",
                 {"chat.completion.chunk": True, "chat.completion": False}.get(kind), entered, cached, written, heard, made,
                 thought, said, "reported" if usage else None, "error" if failed else "success", word(reason, FINISHES),
                 bool(usage) if failed else True, flags or None, key, hashed, 1, team, feature)
            )  # fmt: skip
    kinds = {"id_hash": pl.UInt64, "flags": pl.List(pl.String), "load_id": pl.Int32}
    return pl.DataFrame(found, schema={column: kinds.get(column) for column in COLUMNS}, orient="row")


def polars_json(file: Path, out: Path) -> None:
    """The same mapping in Polars, streamed."""
    kinds = {
        "id": pl.String, "object": pl.String, "created": pl.Int64, "model": pl.String, "service_tier": pl.String,
        "choices": pl.List(pl.Struct({"finish_reason": pl.String})),
        "metadata": pl.Struct({"team": pl.String, "feature": pl.String}),
        "usage": pl.Struct({
            "prompt_tokens": pl.Int64, "completion_tokens": pl.Int64, "total_tokens": pl.Int64,
            "prompt_tokens_details": pl.Struct({"cached_tokens": pl.Int64, "audio_tokens": pl.Int64}),
            "completion_tokens_details": pl.Struct({"reasoning_tokens": pl.Int64, "audio_tokens": pl.Int64}),
        }),
    }  # fmt: skip
    usage = pl.col("usage").struct
    asked, made = usage.field("prompt_tokens_details").struct, usage.field("completion_tokens_details").struct
    entered, answered = usage.field("prompt_tokens"), usage.field("completion_tokens")
    cached, heard, said = asked.field("cached_tokens"), asked.field("audio_tokens"), made.field("audio_tokens")
    thought, total = made.field("reasoning_tokens"), usage.field("total_tokens")
    counts = (entered, answered, cached, heard, said, thought, total)
    key = pl.lit("openai|") + _escaped(pl.col("id"))
    team, feature = pl.col("metadata").struct.field("team"), pl.col("metadata").struct.field("feature")
    flags = {
        "bad_count": pl.any_horizontal((count < 0) | (count >= 10**9) for count in counts),
        "cache_gt_input": cached > entered, "media_gt_total": (heard > entered) | (said + thought > answered),
        "reasoning_gt_output": thought > answered, "total_mismatch": total != entered + answered,
        "usage_missing": entered.is_null() & answered.is_null(), "ts_missing": pl.col("created").is_null(),
    }  # fmt: skip
    pl.scan_ndjson(file, schema=kinds, row_index_name="source_line", row_index_offset=1).select(
        pl.col("id").alias("request_id"), pl.lit("openai_chat").alias("source_format"), pl.lit(str(file)).alias("source_file"),
        "source_line", pl.from_epoch("created", time_unit="s").alias("ts"), team, feature, pl.lit("openai").alias("provider"),
        "model", pl.col("service_tier").str.strip_chars().str.to_lowercase().replace(TIERS), pl.lit("chat").alias("operation"),
        (pl.col("object") == "chat.completion.chunk").alias("is_stream"), entered.alias("input_tokens"),
        cached.alias("cache_read_tokens"), pl.when(asked.field("cached_tokens").is_not_null()).then(0).alias("cache_write_tokens"),
        heard.alias("input_audio_tokens"), answered.alias("output_tokens"), thought.alias("reasoning_tokens"),
        said.alias("output_audio_tokens"), pl.when(entered.is_not_null()).then(pl.lit("reported")).alias("token_source"),
        pl.lit("success").alias("status"),
        pl.col("choices").list.first().struct.field("finish_reason").str.strip_chars().str.to_lowercase().replace(FINISHES),
        pl.lit(value=True).alias("is_billable"), _flags(flags), key.alias("dedup_key"), key.hash(1).alias("id_hash"),
        pl.lit(1).alias("load_id"), team.alias("team_logged"), feature.alias("feature_logged"),
    ).sink_parquet(out)  # fmt: skip


def _flags(tests: dict[str, pl.Expr]) -> pl.Expr:
    listed = pl.concat_list(*(pl.when(test).then(pl.lit(flag)) for flag, test in tests.items())).list.drop_nulls()
    return pl.when(pl.any_horizontal(*tests.values())).then(listed).alias("flags")


def _escaped(value: pl.Expr) -> pl.Expr:
    for sign in ("\\", "|", "#"):
        value = value.str.replace_all(sign, f"\\{sign}", literal=True)
    return value


def polars_csv(file: Path, out: Path) -> None:
    """The table in Polars to the same columns, streamed: counts checked, times read, words in our spelling."""
    counts = ("input_tokens", "cache_read_tokens", "output_tokens")
    entered, cached, answered = (pl.col(name) for name in counts)
    key = pl.lit("rows|") + pl.col("provider").str.to_lowercase() + "|" + _escaped(pl.col("request_id"))
    words = {name: pl.col(name).str.strip_chars().str.to_lowercase() for name in ("provider", "service_tier", "status")}
    flags = {
        "bad_count": pl.any_horizontal((pl.col(name) < 0) | (pl.col(name) >= 10**9) for name in counts),
        "cache_gt_input": cached > entered, "ts_missing": pl.col("ts").is_null(),
        "zero_usage": (entered == 0) & (answered == 0), "usage_missing": entered.is_null() & answered.is_null(),
    }  # fmt: skip
    pl.scan_csv(
        file, schema_overrides=dict.fromkeys(counts, pl.Int64), row_index_name="source_line", row_index_offset=2
    ).with_columns(
        pl.col("ts").str.to_datetime("%Y-%m-%dT%H:%M:%SZ"), words["provider"], words["service_tier"].replace(TIERS),
        words["status"], pl.lit("tenfold").alias("source_format"), pl.lit(str(file)).alias("source_file"),
        pl.when(entered.is_not_null()).then(pl.lit("reported")).alias("token_source"), _flags(flags),
        key.alias("dedup_key"), key.hash(1).alias("id_hash"), pl.lit(1).alias("load_id"),
        pl.col("team").alias("team_logged"), pl.col("feature").alias("feature_logged"),
    ).sink_parquet(out)  # fmt: skip
