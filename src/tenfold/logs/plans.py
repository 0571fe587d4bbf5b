"""How each file of a load will be read, said before the store is touched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold.errors import LogFormatError
from tenfold.logs import READERS, detect, files, mapped, sources
from tenfold.logs.buckets import BUCKET_READERS, BucketReader, bucket_reader
from tenfold.logs.log import Unread
from tenfold.logs.raw import parquet_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tenfold.logs.base import Reader

# Files that a refusal names.
NAMED = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """One file and how it will be read.

    Args:
        file: Where it lies.
        source: Where it is from.
        scan: Its bytes as scanned.
        held: Its content as detected.
        reader: Its format; None where the file is empty.
        settings: What else decides what its rows become, as JSON.
    """

    file: Path
    source: sources.Source
    scan: files.Scan
    held: detect.Content
    reader: Reader | BucketReader | None
    settings: str

    def content(self) -> str:
        """Name the content that was read, for `loads` to know it again.

        Returns:
            Its hash; where a writer or a rotation came between hashing and reading, something that no file has.
        """
        is_same = files.stamp(self.file) == self.scan.stamp
        return self.scan.sha256 if is_same else f"changed while it was read, before {self.scan.sha256}"


def settings_of(
    format_name: str | None, mapping: mapped.MapFile | None, zone: str | None, constants: Mapping[str, str]
) -> dict[str, object]:
    """Give what decides how a file is read, so that the same file is known again.

    Args:
        format_name: Format that the user named.
        mapping: Map of the user.
        zone: Zone that naive times mean.
        constants: Column -> value for every row.

    Returns:
        Settings, for JSON.
    """
    return {
        "format": format_name,
        "map": mapping.text if mapping else None,
        "zone": zone,
        "set": dict(sorted(constants.items())),
    }


def plans(
    found: list[sources.Source],
    name: str | None,
    mapping: mapped.MapFile | None,
    zone: str | None,
    constants: Mapping[str, str],
    unread: list[Unread],
    *,
    is_part: bool = False,
) -> list[Plan]:
    """Say how each file will be read, before the store is touched; `unread` takes found ones of unknown format."""
    plans: list[Plan] = []
    unknown: list[str] = []
    for source in found:
        file = source.file
        try:
            with source.named():
                scan, held = _looked_at(file)
                reader = None
                if scan.lines or held.kind == "parquet":
                    reader = (None if mapping else bucket_reader(file, name)) or _reader(file, held, name, mapping)
        except OSError as error:
            raise LogFormatError(f"{source.name}: cannot be read: {error.strerror or error}") from error
        except LogFormatError as error:
            if mapping or name or (len(found) == 1 and not (is_part and source.is_found)):
                raise
            short = source.public(error.short if isinstance(error, detect.UnknownFormatError) else str(error))
            if source.is_found:
                unread.append(Unread(file=source.name, why=short.removeprefix(f"{source.name}: ")))
            else:
                unknown.append(short)
            continue
        if reader is None and scan.damage and len(found) == 1:
            raise LogFormatError(f"{source.name}: {scan.damage}, and not one whole line is left. Get the file again")
        settings = settings_of(reader.name if reader else "empty", mapping, zone, constants)
        plans.append(Plan(file, source, scan, held, reader, json.dumps(settings, sort_keys=True)))
    if unread and not is_part and not any(plan.reader for plan in plans):
        unknown += (f"{one['file']}: {one['why']}" for one in unread)
    if unknown:
        listed = "; ".join(unknown[:NAMED]) + (f"; and {len(unknown) - NAMED} more" * (len(unknown) > NAMED))
        raise LogFormatError(
            f"{len(unknown)} of {len(found)} files are of no known format, so nothing was loaded: {listed}. "
            f"{detect.WAY_OUT}, or leave those files out, or load their folder, which passes over them"
        )
    return plans


def fetched(
    found: sources.Sources, plans: Callable[[list[sources.Source]], list[Plan]], unread: list[Unread]
) -> Iterator[Plan]:
    """Plan what is fetched, one after the other; refuse where nothing of it all can be read."""
    is_read = bool(found.here or found.loads)
    for source in found.fetched():
        for plan in plans([source]):
            is_read = is_read or plan.reader is not None
            yield plan
    if unread and not is_read:
        named = "; ".join(f"{one['file']}: {one['why']}" for one in unread[:NAMED])
        raise LogFormatError(f"none of {len(unread)} objects is of a known format: {named}. {detect.WAY_OUT}")


def _looked_at(file: Path) -> tuple[files.Scan, detect.Content]:
    columns = list(parquet_columns(file)) if detect.is_parquet(file) else None
    return files.scan(file), detect.content(file, columns)


def _reader(file: Path, held: detect.Content, name: str | None, mapping: mapped.MapFile | None) -> Reader:
    if mapping:
        detect.check_readable(file, held)
        reader = mapping.reader(file, held)
    else:
        reader = detect.choose(file, held, READERS, name, [one.name for one in BUCKET_READERS])
    if reader is mapped.TENFOLD_ROWS:
        mapped.check_columns(file, held)
    detect.check_header(file, held, reader)
    return reader
