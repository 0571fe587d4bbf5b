"""Pages of an admin API's report: buckets of a time, each with its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.logs import documents
from tenfold.logs.buckets.base import BucketError, Found, Source, decoded, grouped_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_DIMENSIONS = ("project", "api_key_id", "user_id", "model", "service_tier", "region", "context_band", "meter")
Rows = list[dict[str, object]]


def read(
    source: Source, each: Callable[[Mapping[str, object], Mapping[str, object]], list[dict[str, object]]]
) -> Iterator[Found]:
    """Read the pages in a file, one document or a page a line.

    Args:
        source: The file.
        each: Makes the rows of one result, given its bucket and itself.

    Yields:
        Every row, refused result and whatever the file breaks off with.
    """
    found: list[Found] = []
    for start, page, whole in documents.values(source.text):
        for place, bucket, bucket_whole in documents.entries(page, "data"):
            found += _results(source, start + place, bucket, each)
            if bucket_whole and not (bucket.startswith("{") and "results" in documents.beside(bucket, "")):
                line = source.line(start + place)
                found.append(Found(line, None, "no bucket: an object with results was expected", "data"))
            if not bucket_whole:
                line = source.line(start + place)
                found.append(Found(line, None, "not valid JSON: the document breaks off in this bucket", "data"))
        if not whole and not page.lstrip().startswith("{"):
            found.append(Found(source.line(start), None, "no page: an object with data was expected", "$"))
    rows = [one.row for one in found if one.row is not None]
    groups = grouped_by(rows, _DIMENSIONS)
    for one in found:
        yield one if one.row is None else one._replace(row={**one.row, "grouped_by": groups})


def _results(
    source: Source,
    start: int,
    bucket: str,
    each: Callable[[Mapping[str, object], Mapping[str, object]], list[dict[str, object]]],
) -> Iterator[Found]:
    about = documents.beside(bucket, "results")
    for place, result, whole in documents.entries(bucket, "results"):
        line = source.line(start + place)
        if not whole:
            continue  # the bucket says so
        try:
            rows = each(about, decoded(result))
        except BucketError as error:
            yield Found(line, None, str(error), error.path)
        else:
            yield from (Found(line, row) for row in rows)
