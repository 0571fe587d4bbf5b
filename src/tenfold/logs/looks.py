"""What a file that no reader knows looks like: words for a refusal, told from its first bytes."""

from __future__ import annotations

# First bytes of files that people take for logs.
_MAGIC = {
    b"PK\x03\x04": "a spreadsheet or ZIP archive: save the sheet as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "an old Excel sheet: save it as CSV",
    b"%PDF": "a PDF document",
    b"BZh": "a bzip2 archive: unpack it, or pack it with gzip or zstd",
    b"\xfd7zXZ": "an xz archive: unpack it, or pack it with gzip or zstd",
    b"SQLite format 3": "an SQLite database: export the table as CSV",
    b"\xff\xfe": "UTF-16 text: convert it to UTF-8",
    b"\xfe\xff": "UTF-16 text: convert it to UTF-8",
}


def looks_like(raw: bytes, text: str) -> str:
    """Name what is neither JSON lines nor a table.

    Args:
        raw: The first bytes.
        text: They as text, undecodable ones replaced.

    Returns:
        The content in words, with the way out; empty for what may be a table.
    """
    packed = next((name for magic, name in _MAGIC.items() if raw.startswith(magic)), "")
    if raw[8:12] == b"DUCK":
        packed = "a DuckDB database: name it with --db"
    return packed or _text_looks_like(raw, text)


def _text_looks_like(raw: bytes, text: str) -> str:
    start = text.lstrip()
    if start.startswith("{") or (start.startswith("[") and start[1:].lstrip()[:1] in {"{", "[", '"'}):
        return "a JSON document over several lines, or broken JSON: convert it to one object a line (jq -c)"
    if start.startswith("<"):
        return "HTML or XML"
    if _is_binary(raw, text):
        return "binary data"
    if "\r" in text and "\n" not in text:
        return "text whose lines end in CR alone (classic Mac): convert it, for example with tr '\\r' '\\n'"
    return ""


def _is_binary(raw: bytes, text: str) -> bool:
    # Runs of NUL are what a torn write leaves in a line; a first line has none.
    strange = text.count("\ufffd") + sum(raw.count(code) for code in range(1, 32) if code not in b"\t\n\r\x1b\f")
    return b"\0" in raw[:1000].partition(b"\n")[0] or 20 * strange > len(text)
