"""The tables of a tenfold store: every column with type, unit and meaning. DDL, docs and checks are made from here."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    group: str = ""


def _columns(group: str, *rows: tuple[str, str, str] | tuple[str, str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(r[0], r[1], r[2], r[3] if len(r) > 3 else "", group) for r in rows)


REQUESTS: tuple[Column, ...] = (
    *_columns(
        "identity",
        ("request_id", "VARCHAR", "provider's id of the response or message"),
        ("custom_id", "VARCHAR", "caller's own id (batch lines)"),
        ("parent_id", "VARCHAR", "id of the response this row is an iteration of"),
        ("attempt", "INTEGER", "0 for the first try", "count"),
        ("retry_of", "VARCHAR", "request_id of the try before"),
        ("session_id", "VARCHAR", "conversation or agent session"),
        ("trace_id", "VARCHAR", "trace that the call belongs to"),
        ("source_format", "VARCHAR", "reader that read the row"),
        ("source_file", "VARCHAR", "file the row came from, as given"),
        ("source_line", "BIGINT", "line (record for Parquet) in that file, from 1", "line"),
    ),
    *_columns(
        "time",
        ("ts", "TIMESTAMP", "start of the call, UTC", "UTC"),
        ("duration_ms", "DOUBLE", "start to last token", "ms"),
        ("ttft_ms", "DOUBLE", "start to first token", "ms"),
        ("queue_ms", "DOUBLE", "time queued before work began", "ms"),
    ),
    *_columns(
        "who",
        ("org", "VARCHAR", "organisation or account"),
        ("project", "VARCHAR", "project or workspace"),
        ("team", "VARCHAR", "owning team"),
        ("feature", "VARCHAR", "product feature or route"),
        ("environment", "VARCHAR", "prod, staging, ..."),
        ("user_id", "VARCHAR", "end user"),
        ("api_key_id", "VARCHAR", "key id or hash, never a key"),
        ("client", "VARCHAR", "calling application and version"),
        ("tags", "MAP(VARCHAR, VARCHAR)", "free tags"),
    ),
    *_columns(
        "what",
        ("provider", "VARCHAR", "who bills, in tenfold's spelling"),
        ("model", "VARCHAR", "model as served"),
        ("model_requested", "VARCHAR", "model as asked for"),
        ("model_revision", "VARCHAR", "revision of a self-hosted model"),
        ("region", "VARCHAR", "price region as the provider reports it; NULL is none"),
        ("service_tier", "VARCHAR", "standard, batch, flex, priority, fast; NULL is standard"),
        ("operation", "VARCHAR", "chat, responses, messages, retrieve, ..."),
        ("is_stream", "BOOLEAN", "answer was streamed"),
        ("is_structured", "BOOLEAN", "answer was schema-constrained"),
    ),
    *_columns(
        "where",
        ("deployment", "VARCHAR", "image and configuration id"),
        ("replica", "VARCHAR", "pod, host or GPU"),
        ("preemptions", "INTEGER", "times preempted", "count"),
        ("running", "INTEGER", "requests running at start", "count"),
        ("waiting", "INTEGER", "requests waiting at start", "count"),
        ("kv_usage_ratio", "DOUBLE", "KV cache in use at start", "ratio"),
    ),
    *_columns(
        "tokens",
        ("input_tokens", "BIGINT", "all input tokens, cached and written ones included", "tokens"),
        ("cache_read_tokens", "BIGINT", "input read from a prompt cache; part of input_tokens", "tokens"),
        (
            "cache_write_tokens",
            "BIGINT",
            "input written to a prompt cache, all lifetimes; part of input_tokens",
            "tokens",
        ),
        (
            "cache_write_long_tokens",
            "BIGINT",
            "written with the longer lifetime; part of cache_write_tokens",
            "tokens",
        ),
        ("input_audio_tokens", "BIGINT", "audio input; part of input_tokens", "tokens"),
        ("input_image_tokens", "BIGINT", "image input; part of input_tokens", "tokens"),
        ("input_video_tokens", "BIGINT", "video input; part of input_tokens", "tokens"),
        ("cache_read_audio_tokens", "BIGINT", "audio in cache_read_tokens and in input_audio_tokens", "tokens"),
        ("cache_read_image_tokens", "BIGINT", "images in cache_read_tokens and in input_image_tokens", "tokens"),
        ("cache_read_video_tokens", "BIGINT", "video in cache_read_tokens and in input_video_tokens", "tokens"),
        ("output_tokens", "BIGINT", "all output tokens, reasoning included", "tokens"),
        ("reasoning_tokens", "BIGINT", "reasoning; part of output_tokens", "tokens"),
        ("output_audio_tokens", "BIGINT", "audio output; part of output_tokens", "tokens"),
        ("output_image_tokens", "BIGINT", "image output; part of output_tokens", "tokens"),
        ("output_video_tokens", "BIGINT", "video output; part of output_tokens", "tokens"),
        ("web_searches", "BIGINT", "web searches billed by call", "calls"),
        ("web_searches_preview", "BIGINT", "web searches with the tool's preview version", "calls"),
        ("file_searches", "BIGINT", "searches in stored files", "calls"),
        ("maps_searches", "BIGINT", "grounding with maps", "calls"),
        ("code_sessions", "BIGINT", "sessions of a hosted code interpreter", "calls"),
        ("images", "BIGINT", "generated images billed by the piece", "images"),
        ("pages", "BIGINT", "document pages read", "pages"),
        ("characters", "BIGINT", "characters of input text, where billed by them", "characters"),
        ("input_audio_ms", "BIGINT", "input audio billed by time", "ms"),
        ("output_media_ms", "BIGINT", "generated audio or video billed by time", "ms"),
        ("cache_storage_token_s", "BIGINT", "tokens held in an explicit cache, times seconds", "token_s"),
        ("token_source", "VARCHAR", "reported, estimated"),
    ),
    *_columns(
        "content",
        ("prompt_hash", "VARCHAR", "keyed hash of the whole prompt"),
        ("params_hash", "VARCHAR", "keyed hash of the sampling parameters"),
        ("response_hash", "VARCHAR", "keyed hash of the answer"),
        ("prefix_hashes", "VARCHAR[]", "keyed cumulative hashes, one a block"),
        ("prefix_block_tokens", "INTEGER", "tokens in a block of prefix_hashes", "tokens"),
    ),
    *_columns(
        "outcome",
        ("status", "VARCHAR", "success, incomplete, error, cancelled, expired, blocked, timeout"),
        ("finish_reason", "VARCHAR", "stop, length, tool_calls, content_filter"),
        ("http_status", "INTEGER", "HTTP status where logged"),
        ("is_billable", "BOOLEAN", "provider bills the call; NULL counts as billable"),
        ("gateway_cache_hit", "BOOLEAN", "answered by a gateway's response cache; NULL counts as no"),
        ("outcome_ok", "BOOLEAN", "the caller's own judgement of the answer"),
    ),
    *_columns("money", ("cost_logged_usd", "DECIMAL(38,12)", "cost as logged; never used to price", "USD")),
    *_columns("quality", ("flags", "VARCHAR[]", "what is odd about the row")),
    *_columns(
        "internal",
        ("dedup_key", "VARCHAR", "what makes the row one request in its source; NULL has no id"),
        ("id_hash", "UBIGINT", "lower 64 bits of md5(dedup_key)"),
        ("price_key", "INTEGER", "row of price_keys: (provider, model, tier, region) from usage alone"),
        ("load_id", "INTEGER", "row of loads"),
        ("team_logged", "VARCHAR", "team as the log says it; team is this or what the owner mapping says"),
        ("feature_logged", "VARCHAR", "feature as the log says it"),
    ),
)

PRICE_KEYS: tuple[Column, ...] = (
    Column("price_key", "INTEGER", "small number"),
    Column("provider", "VARCHAR", "who bills; empty if unknown"),
    Column("model", "VARCHAR", "model as served; empty if unknown"),
    Column("service_tier", "VARCHAR", "tier; standard where the log says nothing"),
    Column("region", "VARCHAR", "price region; empty where the log says nothing"),
)

REJECTS: tuple[Column, ...] = (
    Column("source_file", "VARCHAR", "file"),
    Column("source_line", "BIGINT", "line in that file, from 1", "line"),
    Column("reason", "VARCHAR", "why the line is no request"),
    Column("path", "VARCHAR", "JSON path or column the reason is about"),
    Column("excerpt", "VARCHAR", "first bytes of the line, usage only where text may be private"),
    Column("load_id", "INTEGER", "row of loads"),
)

TEXTS: tuple[Column, ...] = (
    Column("load_id", "INTEGER", "row of loads"),
    Column("source_line", "BIGINT", "line in the load's file, from 1", "line"),
    Column("dedup_key", "VARCHAR", "as in requests: tells the calls of one line apart"),
    Column("prompt", "VARCHAR", "what was asked, as logged: JSON or plain text"),
    Column("response", "VARCHAR", "what was answered, as logged: JSON or plain text"),
)

LOADS: tuple[Column, ...] = (
    Column("load_id", "INTEGER", "number of the load"),
    Column("loaded_at", "TIMESTAMP", "when, UTC", "UTC"),
    Column("source_file", "VARCHAR", "file, as given"),
    Column("sha256", "VARCHAR", "hash of the file's bytes"),
    Column("settings", "VARCHAR", "format, map, zone and constants it was read with"),
    Column("source_format", "VARCHAR", "reader"),
    Column("lines", "BIGINT", "records read", "count"),
    Column("requests", "BIGINT", "new requests", "count"),
    Column("duplicates", "BIGINT", "exact repeats dropped", "count"),
    Column("merged", "BIGINT", "snapshots folded into one request", "count"),
    Column("rejected", "BIGINT", "lines in rejects", "count"),
    Column("flagged", "BIGINT", "requests with flags", "count"),
    Column("ignored", "BIGINT", "lines of the format that carry no request", "count"),
    Column("buckets", "BIGINT", "rows of usage_buckets", "count"),
    Column("version", "VARCHAR", "what an object store says of the content; NULL for what lies elsewhere"),
)

# Token counts that a report may give for a bucket, as in requests.
BUCKET_TOKENS = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens"),
    *("input_audio_tokens", "input_image_tokens", "output_tokens", "reasoning_tokens"),
    *("output_audio_tokens", "output_image_tokens", "web_searches"),
)
USAGE_BUCKETS: tuple[Column, ...] = (
    Column("bucket_start", "TIMESTAMP", "start, UTC; NULL where the source has none (a counter)", "UTC"),
    Column("bucket_end", "TIMESTAMP", "end, not within the bucket, UTC", "UTC"),
    Column("source_format", "VARCHAR", "reader that read the row"),
    Column("source_file", "VARCHAR", "file the row came from, as given"),
    Column("source_line", "BIGINT", "line in that file, from 1", "line"),
    Column("provider", "VARCHAR", "who bills, in tenfold's spelling"),
    Column("org", "VARCHAR", "organisation or account"),
    Column("project", "VARCHAR", "project, workspace or sub-account"),
    Column("api_key_id", "VARCHAR", "key id or hash"),
    Column("user_id", "VARCHAR", "user"),
    Column("model", "VARCHAR", "model"),
    Column("service_tier", "VARCHAR", "tier"),
    Column("region", "VARCHAR", "price region"),
    Column("context_band", "VARCHAR", "context band as the source names it"),
    Column("grouped_by", "VARCHAR", "dimensions the report is split by; NULL in any other means all of them"),
    Column("category", "VARCHAR", "usage, purchase, credit, tax, adjustment; NULL is usage"),
    Column("meter", "VARCHAR", "what quantity and amount are of: tenfold's word, else the source's"),
    *(Column(name, "BIGINT", f"sum of {name}, as in requests", "units") for name in BUCKET_TOKENS),
    Column("requests", "BIGINT", "calls in the bucket; as quantity", "count"),
    Column("quantity", "DECIMAL(38,12)", "units of the meter; repeated in each kind of amount", "unit"),
    Column("unit", "VARCHAR", "tokens, images, s, ..."),
    Column("is_cumulative", "BOOLEAN", "quantity counts from the server's start, not over the bucket"),
    Column("amount", "DECIMAL(38,12)", "money in currency", "currency"),
    Column("currency", "VARCHAR", "currency of amount"),
    Column("amount_usd", "DECIMAL(38,12)", "amount where it is in dollars", "USD"),
    Column("amount_kind", "VARCHAR", "list, contracted, billed, effective, or total of other rows: never add two"),
    Column("description", "VARCHAR", "the source's own words for the charge"),
    Column("invoice_id", "VARCHAR", "invoice"),
    Column("tags", "MAP(VARCHAR, VARCHAR)", "tags and labels"),
    Column("bucket_key", "VARCHAR", "hash of what the row is about: a later file's row replaces an earlier one's"),
    Column("load_id", "INTEGER", "row of loads"),
)

PLANS: tuple[Column, ...] = (
    Column("name", "VARCHAR", "what the plan is called; no two alike"),
    Column("recorded_at", "TIMESTAMP", "when, UTC", "UTC"),
    Column("first_day", "DATE", "first day of the window it was made on; NULL for a log without times"),
    Column("last_day", "DATE", "last day of it"),
    Column("zone", "VARCHAR", "zone that those days are cut in"),
    Column("card_version", "VARCHAR", "hash of the price files it was priced by"),
    Column("log_hash", "VARCHAR", "hash of the files that had been loaded"),
    Column("tenfold_version", "VARCHAR", "version that recorded it"),
    Column("document", "VARCHAR", "what `tenfold levers --json` printed"),
)

FORGOTTEN: tuple[Column, ...] = (
    Column("user_hash", "VARCHAR", "keyed hash of a user who was forgotten"),
    Column("forgotten_at", "TIMESTAMP", "when, UTC; what the user asked before then is refused by loads", "UTC"),
)

META: tuple[Column, ...] = (
    Column("name", "VARCHAR", "setting of the store"),
    Column("value", "VARCHAR", "its value"),
)

# Dimensions a cube keeps apart; any other grouping reads the raw rows.
CUBE_DIMENSIONS = ("org", "project", "team", "feature", "environment", "source_format")
# Counts whose sums price a cell exactly, once the cell is uniform in which of them are known and above zero.
TOKEN_COLUMNS = tuple(column.name for column in REQUESTS if column.group == "tokens" and column.unit)

CUBE: tuple[Column, ...] = (
    Column("day", "DATE", "UTC day", "UTC"),
    *(Column(name, "VARCHAR", f"as in requests: {name}") for name in CUBE_DIMENSIONS),
    Column("price_key", "INTEGER", "row of price_keys"),
    Column(
        "context_tokens",
        "BIGINT",
        "1 above the highest known threshold below the total input, else 0",
        "tokens",
    ),
    Column("is_billed", "BOOLEAN", "billable and not answered by a gateway cache"),
    Column("is_overlap", "BOOLEAN", "subsets together exceed their total"),
    Column(
        "unknown_mask",
        "INTEGER",
        "1: input unknown, 2: output unknown; 4, 8, 16: audio, image, video there and their cached share unknown",
    ),
    Column("positive_mask", "INTEGER", "bit per count: above zero"),
    Column("requests", "BIGINT", "requests in the cell; negative in a correction", "count"),
    Column("split_unknown", "BIGINT", "requests with input and an unknown cached share", "count"),
    *(Column(name, "BIGINT", f"sum of {name}", "units") for name in TOKEN_COLUMNS),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "requests": REQUESTS,
    "price_keys": PRICE_KEYS,
    "rejects": REJECTS,
    "texts": TEXTS,
    "loads": LOADS,
    "usage_buckets": USAGE_BUCKETS,
    "cube": CUBE,
    "plans": PLANS,
    "forgotten": FORGOTTEN,
    "meta": META,
}
SCHEMA_VERSION = 4
# Tables that came after files of this version had been made: such a file reads as if they were empty, and gets them
# from the next writer.
ADDED = ("plans", "forgotten")


def ddl(table: str, *, temp: bool = False, name: str | None = None) -> str:
    """Write the CREATE TABLE statement of a table.

    Args:
        table: Key of ``TABLES``.
        temp: Make it a temporary table.
        name: Another name for it.

    Returns:
        SQL text; ``IF NOT EXISTS``, no keys (a key makes loads many times slower).
    """
    body = ",\n  ".join(f"{column.name} {column.type}" for column in TABLES[table])
    return f"CREATE {'TEMP ' if temp else ''}TABLE IF NOT EXISTS {name or table} (\n  {body}\n)"


def names(table: str) -> tuple[str, ...]:
    """List a table's column names in order.

    Args:
        table: Key of ``TABLES``.

    Returns:
        The names.
    """
    return tuple(column.name for column in TABLES[table])
