"""Damaged files of every format: nothing crashes, every line is accounted for, and the slow reader says the same."""

from __future__ import annotations

import sys
import time

import polars as pl
import pytest
import slow_reader
from fuzz_logs import CASES, NAMES, file_of, is_table, one_bad_line, rows_of
from quick import few

from tenfold.logs import READERS, load
from tenfold.logs.base import steps
from tenfold.store.schema import TOKEN_COLUMNS

# What the slow reader judges too; other flags are about times, statuses and owners.
FLAGS = {
    *("bad_count", "cache_gt_input", "media_gt_total", "cache_write_long_gt_write", "reasoning_gt_output"),
    *("total_mismatch", "convention_by_total", "unknown_meter"),
}


def made(name, kind, seed, count, share=0.6):
    if kind == "parquet":
        return rows_of(name, seed, count, share=share)
    return file_of(name, kind, seed, count, share=share)


def keys_of(name):
    """The keys that a reader says it reads, which may not stand twice; of a map all of them."""
    reader = next(reader for reader in READERS if reader.name == name)
    found = set()
    for path, kind in {**reader.leaves, **(reader.text.leaves if reader.text else {})}.items():
        names = [step.removesuffix("[]").replace(".", "\\.") for step in steps(path)]
        if names[0] in reader.unpacked:  # opened later, the first of each key
            names = names[:1]
        found |= {".".join(names[: end + 1]) for end in range(len(names))}
        if kind.startswith("MAP") and names[0] not in reader.unpacked:
            found.add(".".join([*names, "*"]))
    return frozenset(found)


def differences(folder, made_of):
    """Load files of (format, container, content) in one go and hold them, line by line, to the slow reader's."""
    files, slow = [], []
    for number, (name, kind, content) in enumerate(made_of):
        files.append(folder / f"{number}-{name}.{kind}")
        if kind == "parquet":
            texts = [{column: cell or None for column, cell in row.items()} for row in content]
            pl.DataFrame(texts, schema=dict.fromkeys(texts[0], pl.String)).write_parquet(files[-1])
        else:
            files[-1].write_bytes(content)
        form, is_row = slow_reader.FORMATS[name], kind != "jsonl"
        slow.append(slow_reader.read(form, content, is_table=is_row, keys=keys_of(name)))
    log = load(files, format=made_of[0][0] if len(made_of) == 1 else None, thresholds=())
    fast = log.requests.select("source_file", "source_line", "flags", "token_source", *TOKEN_COLUMNS).to_dicts()
    rejects = log.rejects.select("source_file", "source_line", "reason").to_dicts()
    found = []
    for file, (_, kind, content), result in zip(files, made_of, slow, strict=True):
        text = content if kind == "parquet" else content.split(b"\n")
        own = [row for row in fast if row["source_file"] == str(file)]
        refused = {row["source_line"]: row["reason"] for row in rejects if row["source_file"] == str(file)}
        for line, what in held_against(own, refused, result):
            found.append(f"{file.name} line {line}: {what}\n    {str(text[line - 1])[:1500]}")
    summary = log.summary
    counted = {
        "requests": (summary["requests"], sum(len(one.rows) for one in slow)),
        "rejected": (summary["rejected"], sum(len(one.rejected) for one in slow)),
        "ignored": (summary["ignored"], sum(one.ignored for one in slow)),
        "folded": (summary["duplicates"] + summary["merged"], sum(one.folded for one in slow)),
    }
    for column in TOKEN_COLUMNS:
        rows = [row for one in slow for row in one.rows]
        counted[column] = sum(row[column] or 0 for row in fast), sum(row.judged.counts[column] or 0 for row in rows)
    found += [f"{what}: {both[0]}, slow reader {both[1]}" for what, both in counted.items() if both[0] != both[1]]
    return found, (sum(one.lines for one in slow), len(fast), len(rejects), summary["flagged"])


def held_against(fast, rejects, slow):
    """Compare a file's rows and rejects with the slow reader's; gives line and difference."""
    for line in sorted(rejects.keys() ^ slow.rejected.keys()):
        yield line, f"rejected: {rejects.get(line, 'no')}; slow reader: {slow.rejected.get(line, 'no')}"
    own = {line: row for row in slow.rows for line in row.lines}
    by_line = {}
    for row in slow.rows:
        by_line.setdefault(row.line, []).append(row)
    unseen = {id(row): row for row in slow.rows}
    for row in fast:
        line = row["source_line"]
        if row["token_source"] == "estimated":  # counted in the text: the source itself says nothing
            row |= {"input_tokens": None, "output_tokens": None}
        counts = tuple(row[column] for column in TOKEN_COLUMNS)
        group = [one for one in (*by_line.get(line, ()), *([own[line]] if line in own else [])) if id(one) in unseen]
        if not group:
            yield line, f"a row that the slow reader does not have: {counts}"
            continue
        same = next((one for one in group if one.counts == counts), group[0])
        del unseen[id(same)]
        odd = {c: (f, s) for c, f, s in zip(TOKEN_COLUMNS, counts, same.counts, strict=True) if f != s}
        flags, others = set(row["flags"] or ()), same.judged.flags
        if odd:
            yield line, f"counts (fast, slow) {odd}, flags {sorted(flags)} and {sorted(others)}"
        elif same.line == line:  # of equal ones another may stand
            if flags & FLAGS != others & FLAGS:
                yield line, f"flags {sorted(flags & FLAGS)}, slow reader {sorted(others & FLAGS)}"
            if not same.judged.quoted and ("coerced" in flags) != ("coerced" in others):
                yield line, f"coerced {'coerced' in flags}, slow reader {'coerced' in others}"
    for row in unseen.values():
        yield row.line, f"no row where the slow reader has {row.counts}"


def test_every_reader_has_a_slow_one_and_lines_to_damage():
    names = {reader.name for reader in READERS}
    assert set(slow_reader.FORMATS) == names
    assert set(NAMES) == names


def test_the_columns_are_the_tables_own():
    assert slow_reader.COLUMNS == TOKEN_COLUMNS


# Each format as its sample is, and two that come as other tables, too; the rest is for the full run.
QUICK = (*CASES[: len(NAMES)], ("langfuse", "csv"), ("tenfold", "parquet"))


def batches():
    """Put formats that share ids into different loads: a damaged id may be one of another format's."""
    found: list[dict[str, tuple[str, str]]] = []
    for name, kind in QUICK:
        family = "anthropic" if name == "claude_code" else name.split("_")[0]
        free = next((one for one in found if family not in one), None)
        if free is None:
            found.append({family: (name, kind)})
        else:
            free[family] = (name, kind)
    return [list(one.values()) for one in found]


@pytest.mark.parametrize("cases", few(2, sorted(batches(), key=len)), ids=len)
def test_damaged_lines_are_loaded_flagged_or_quarantined(tmp_path, cases):
    # files in one load, each detected by its first lines
    found, (lines, *_) = differences(tmp_path, [(name, kind, made(name, kind, 1, 150)) for name, kind in cases])
    assert not found, "\n".join(found[:20])
    assert lines > 150 * 0.95 * len(cases)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_one_bad_line_in_a_whole_file(tmp_path, name):
    # the fast reading stops at it: what stands around it is read all the same, and no line changes its fate
    kind = "csv" if is_table(name) else "jsonl"
    for seed in range(20):
        found, _ = differences(tmp_path, [(name, kind, one_bad_line(name, seed, 12))])
        assert not found, "\n".join(found)


@pytest.mark.full
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_twenty_thousand_damaged_lines(tmp_path, name, kind, capsys):
    began, total = time.perf_counter(), [0, 0, 0, 0]
    for seed in range(101, 107):
        # 3,790 lines after the whole ones, 19 of 20 of them damaged: 21,600 in six files
        found, counts = differences(tmp_path, [(name, kind, made(name, kind, seed, 4_000, 0.95))])
        assert not found, "\n".join(found[:20])
        total = [one + more for one, more in zip(total, counts, strict=True)]
    words = ("lines", "loaded", "rejected", "flagged")
    told = "".join(f"{count:>8} {what}" for count, what in zip(total, words, strict=True))
    with capsys.disabled():
        sys.stdout.write(f"\n{name:24}{kind:8}{told}{time.perf_counter() - began:>8.1f} s")
