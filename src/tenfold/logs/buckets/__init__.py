"""Usage buckets: reports, invoices, benchmark results and counters, one reader per source, beside the requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.logs import files
from tenfold.logs.buckets.anthropic_reports import ANTHROPIC_COSTS, ANTHROPIC_USAGE
from tenfold.logs.buckets.base import BucketReader
from tenfold.logs.buckets.focus import FOCUS
from tenfold.logs.buckets.invoice_csv import INVOICE_CSV
from tenfold.logs.buckets.openai_org import OPENAI_ORG_COSTS, OPENAI_ORG_USAGE
from tenfold.logs.buckets.prometheus import PROMETHEUS
from tenfold.logs.buckets.tables import header
from tenfold.logs.buckets.vllm_bench import VLLM_BENCH
from tenfold.logs.detect import is_parquet

if TYPE_CHECKING:
    from pathlib import Path

BUCKET_READERS: tuple[BucketReader, ...] = (
    OPENAI_ORG_USAGE,
    OPENAI_ORG_COSTS,
    ANTHROPIC_USAGE,
    ANTHROPIC_COSTS,
    FOCUS,
    VLLM_BENCH,
    PROMETHEUS,
    INVOICE_CSV,
)
__all__ = ["BUCKET_READERS", "BucketReader", "bucket_reader"]


def bucket_reader(file: Path, name: str | None) -> BucketReader | None:
    """Choose the reader of a file of buckets.

    Args:
        file: The file.
        name: The format the user named.

    Returns:
        The reader; None where the file is none of theirs.
    """
    if name is not None:
        return next((reader for reader in BUCKET_READERS if reader.name == name), None)
    head = header(file) if is_parquet(file) else files.head(file).decode("utf-8", "replace")
    return next((reader for reader in BUCKET_READERS if reader.fits(head)), None)
