"""Sessions of coding agents: lines with the usage so far, and counters that only grow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from slow_reader import conventions
from slow_reader.answers import ANTHROPIC_USAGE, compactions
from slow_reader.core import DATED, Format, Result, Row
from slow_reader.counts import count, judged, summed
from slow_reader.records import Lines, Record, Tree, any_set, first, get, has, is_one_of, named, text

# -- Claude Code: a line a content block, with the usage so far

_OTHER_LINES = ("summary", "file-history-snapshot", "queue-operation", "custom-title", "last-prompt")
_FOUR = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


def _size(value: Record) -> int:
    found = [count(get(value, f"message.usage.{name}")).value for name in _FOUR]
    return sum(one for one in found if isinstance(one, int))


def _is_side(value: Record) -> bool:
    return text(value.get("isSidechain")) == "true"


def _claude(kept: Lines, result: Result) -> list[Row]:
    main: dict[str, list[str]] = {}
    ids: dict[int, tuple[str | None, str | None]] = {}
    for line, value in kept:
        message, request = named(get(value, "message.id")), named(value.get("requestId"))
        ids[line] = (message, request)
        if message is not None and request is not None and not _is_side(value):
            seen = main.setdefault(message, [])
            if request not in seen:
                seen.append(request)
    groups: dict[tuple[Any, ...], Lines] = {}
    for line, value in kept:
        message, request = ids[line]
        known = main.get(message or "", [])
        number = known.index(request) + 1 if request in known else 1
        model = text(get(value, "message.model"))
        own = (line,) if message is None else (message, number, model)
        groups.setdefault(own, []).append((line, value))
    rows: list[Row] = []
    children: list[Row] = []
    for lines in groups.values():
        line, value = max(lines, key=lambda one: (_size(one[1]), not _is_side(one[1]), one[0]))
        message, request = ids[line]
        number = main[message].index(request) + 1 if message in main and request in main[message] else 1
        is_own = message is not None and message.startswith("msg_")
        key = message
        if message is not None and request is not None and (number > 1 or not is_own):
            key = f"{message}|{request}"
        stops = [stop for _, one in lines if (stop := get(one, "message.stop_reason")) is not None]
        usage = get(value, "message.usage")
        seed = not stops and (text(get(usage, "output_tokens")) or "").strip('"') == "1"
        found = judged(conventions.ANTHROPIC, usage, {"output_tokens": None} if seed else {})
        who = (text(get(value, "message.model")) or None,)
        row = Row(line, found, key, who)
        row.lines |= {number for number, one in lines if _size(one) == _size(value)}
        rows.append(row)
        children += compactions(line, usage, key, who)
        result.folded += len(lines) - 1
    order = sorted(rows, key=lambda row: row.line)
    return [*order, *children]


def _beside_claude(value: Record) -> bool:
    usage, kind = get(value, "message.usage"), value.get("type")
    of_session = has(value, "sessionId") or has(value, "leafUuid") or kind in _OTHER_LINES
    if usage is None and value.get("usage") is None and kind is not None and kind != "assistant" and of_session:
        return True
    if get(value, "message.model") == "<synthetic>":
        return True
    texts = [text(get(usage, name)) for name in _FOUR]
    return any(one is not None for one in texts) and all(one is None or one.strip('"') in {"0", "0.0"} for one in texts)


def _is_claude(value: Record) -> bool:
    return any_set(
        value,
        *((name, "message.usage") for name in ("sessionId", "requestId", "timestamp")),
        *(("sessionId", "type"), ("type", "leafUuid")),
    ) or is_one_of(value, "type", *_OTHER_LINES)


# -- Codex: counters of a thread; a request is what they grew by

_COUNTERS = (
    *("input_tokens", "cached_input_tokens", "cache_write_input_tokens"),
    *("output_tokens", "reasoning_output_tokens", "total_tokens"),
)
_HEADS = ("session_meta", "thread.started")
_PARENTS = (
    "payload.forked_from_id",
    "payload.parent_thread_id",
    "payload.source.subagent.thread_spawn.parent_thread_id",
)
_COPY = timedelta(seconds=1)


def _moment(value: Record) -> datetime | None:
    try:
        return datetime.fromisoformat((text(value.get("timestamp")) or "").strip('"')).replace(tzinfo=None)
    except ValueError:
        return None


def _is_counted(value: Record) -> bool:
    return (
        value.get("type") == "event_msg" and get(value, "payload.type") == "token_count" and has(value, "payload.info")
    )


def _is_event(value: Record) -> bool:
    return _is_counted(value) or (value.get("type") == "turn.completed" and value.get("usage") is not None)


def _codex(kept: Lines, result: Result) -> list[Row]:
    heads = [(line, value) for line, value in kept if value.get("type") in _HEADS]
    ids = {line: named(first(value, "payload.id", "payload.session_id", "thread_id")) for line, value in heads}
    parents = {line: first(value, *_PARENTS) for line, value in heads}
    ancestors = set[int]()
    for place, (line, _) in enumerate(heads):
        before = heads[place - 1][0] if place else None
        follows = before == line - 1 and ids[line] is not None and ids[before] not in (None, ids[line])
        if follows or any(parents[e] == ids[line] is not None != ids[e] for e, _ in heads if e < line):
            ancestors.add(line)
    begun = text(kept[0][1].get("timestamp")) if kept else None
    threads: dict[int, Lines] = {}
    own = 0
    for line, value in kept:
        if line in ids and line not in ancestors:
            own = line
        threads.setdefault(own, []).append((line, value))
    rows: list[Row] = []
    for head, lines in threads.items():
        is_fork = head and (parents[head] is not None or head + 1 in ancestors)
        started = _moment(dict(lines)[head]) if head else None
        thread = ids.get(head) or begun
        rows += _counted(lines, thread, started if is_fork else None, result, is_fork=bool(is_fork))
        result.ignored += sum(value.get("type") in (*_HEADS, "turn_context") for _, value in lines)
    return rows


def _counted(lines: Lines, thread: str | None, started: datetime | None, result: Result, *, is_fork: bool) -> list[Row]:
    rows: list[Row] = []
    before: dict[str, int] = {}
    prior, copying, last_moment = False, is_fork, started
    model = provider = None
    execs: list[tuple[int, Record, tuple[str | None, ...]]] = []
    for line, value in lines:
        kind = value.get("type")
        own = first(value, "payload.info.model")
        own = get(value, "payload.model") if own is None and kind == "turn_context" else own
        model = model if own is None else text(own)
        said = get(value, "payload.model_provider") if kind in _HEADS else None
        provider = provider if said is None else text(said)
        if not _is_event(value):
            result.folded += kind not in (*_HEADS, "turn_context")
            continue
        info = get(value, "payload.info") or {}
        totals = first(info, "total_token_usage") or value.get("usage")
        last = info.get("last_token_usage")
        moment = _moment(value)
        if copying:
            near = moment is not None and last_moment is not None and moment - last_moment <= _COPY
            copying = near or (moment is not None and started is not None and moment < started)
        last_moment = moment if moment is not None else last_moment
        numbers = {name: count(get(totals, name)).value for name in _COUNTERS}
        known = {name: number for name, number in numbers.items() if isinstance(number, int)}
        fell = any(number < before[name] for name, number in known.items() if name in before)
        repeat = prior and totals is not None and all(known.get(name) == before.get(name) for name in _COUNTERS)
        usage: Record = {}
        for name in _COUNTERS:
            if not prior or fell or totals is None:
                usage[name] = get(last if last is not None else totals, name)
            elif name in known:
                usage[name] = known[name] - before.get(name, 0)
            else:
                usage[name] = get(totals, name)
        before |= known
        prior = prior or totals is not None
        nothing = text(usage["input_tokens"]) == text(usage["output_tokens"]) == "0"
        if repeat or copying or nothing:
            result.folded += 1
            continue
        who = (model or None, provider or "openai")
        if kind == "turn.completed":
            execs.append((line, usage, who))
            continue
        told = text(value.get("timestamp")) if totals is None else [text(get(totals, name)) for name in _COUNTERS]
        key = f"{thread}|{told}" if thread and told else None
        seconds = None if moment is None else moment.replace(tzinfo=UTC).timestamp()
        at = seconds if seconds is not None and int(seconds) in DATED else None
        rows.append(Row(line, judged(conventions.CODEX, usage), key, who, at))
    if execs:
        # a thread of exec is one request: its turns have no times, and its total may have begun in another file
        whole = {name: summed([usage[name] for _, usage, _ in execs]) for name in _COUNTERS}
        own = {column: whole[paths[0]] for column, paths in conventions.CODEX.counts.items()}
        found = judged(conventions.CODEX, {}, own)
        rows.append(Row(execs[-1][0], found, thread and f"exec|{thread}", execs[-1][2]))
        result.folded += len(execs) - 1
    return rows


_CODEX_BESIDE = ("turn.started", "turn.failed", "item.started", "item.updated", "item.completed", "error")


def _beside_codex(value: Record) -> bool:
    kind = value.get("type")
    if kind in _CODEX_BESIDE or (kind == "turn.completed" and value.get("usage") is None):
        return True
    is_other = value.get("payload") is not None and kind is not None and kind not in ("session_meta", "turn_context")
    return is_other and not _is_counted(value)


_COUNTER_TREE: Tree = {"last_token_usage": {}, "total_token_usage": {}}


FORMATS = (
    Format(
        "claude_code",
        _claude,
        _is_claude,
        {"usage": {}, "message": {"usage": ANTHROPIC_USAGE}},
        beside=_beside_claude,
    ),
    Format(
        "codex",
        _codex,
        lambda v: (
            has(v, "timestamp", "type", "payload")
            or is_one_of(v, "type", "session_meta", "turn_context", "thread.started", "turn.completed")
        ),
        {"payload": {"info": _COUNTER_TREE}, "usage": {}},
        beside=_beside_codex,
    ),
)
