"""What every form of a review needs first: the sections to write, and the links between numbers and their notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, count

from tenfold.reviewing.document import Block, Document, Lines, Made, MadeList, Section, Tiles

_NOT_OF_AN_ID = re.compile(r"[^A-Za-z0-9_-]+")
# Letters written from the right: a run of them is set apart, or it turns the order of what stands beside it.
_RIGHT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
RIGHT_TO_LEFT = re.compile(rf"{_RIGHT}(?:[^\n<>&`]*?{_RIGHT})*")
CODE = re.compile(r"`([^`]+)`")


def prepared(document: Document) -> Document:
    """Give a review the sections that it owes its reader: what was left out, and notes where no section lists them.

    Args:
        document: The review.

    Returns:
        The review, every number's note in it, nothing left out unsaid.
    """
    sections = list(document.sections)
    if document.made and not any(isinstance(block, MadeList) for one in sections for block in one.blocks):
        sections.append(Section("how", "How each number was made", (MadeList(),)))
    if document.skipped:
        lines = tuple(f"{one.title}: {one.reason.rstrip('.')}." for one in document.skipped)
        sections.append(Section("left-out", "Left out", (Lines(lines),)))
    return replace(document, sections=tuple(sections), skipped=())


def keys(block: Block) -> Iterator[str]:
    """Name the notes that a block's numbers have, in order.

    Args:
        block: The block.

    Yields:
        Keys of notes.
    """
    if isinstance(block, Tiles):
        yield from (tile.made for tile in block.items)
    else:
        yield getattr(block, "made", "")


class Notes:
    """Links from numbers to the notes on how they were made, and back to the first such number of each section.

    Args:
        document: The review.
    """

    def __init__(self, document: Document) -> None:
        self.made: dict[str, Made] = {note.key: note for note in document.made}
        self._used: dict[str, dict[str, Section]] = {key: {} for key in self.made}
        self._given: set[str] = set()
        for section in document.sections:
            for block in section.blocks:
                for key in keys(block):
                    if key in self._used:
                        self._used[key][anchor(section, key)] = section

    def uses(self, key: str) -> tuple[tuple[str, str], ...]:
        """Tell where a note's numbers stand.

        Args:
            key: The note's key.

        Returns:
            Anchor and section title, in the order of the sections.
        """
        return tuple((place, section.title) for place, section in self._used[key].items())

    def first(self, section: Section, key: str) -> str:
        """Give the anchor of a number to the first that asks for it.

        Args:
            section: The section that the number is in.
            key: Its note's key.

        Returns:
            The anchor, once; then nothing, since ids are unique.
        """
        place = anchor(section, key)
        if place in self._given:
            return ""
        self._given.add(place)
        return place


def anchor(section: Section, key: str) -> str:
    """Name the place of the first number of a section that has a note.

    Args:
        section: The section.
        key: The note's key.

    Returns:
        An id.
    """
    return f"{ident(section.key)}--{ident(key)}"


class Ids:
    """Ids that are given once, for what nothing links to: tables and pictures beside sections and notes.

    Args:
        document: The review.
    """

    def __init__(self, document: Document) -> None:
        keys = [ident(one.key) for one in (*document.sections, *document.made)]
        self._taken = {"main", *keys, *(f"{key}-title" for key in keys)}

    def new(self, name: str) -> str:
        """Make an id that nothing on the page has.

        Args:
            name: The name of a table or a picture.

        Returns:
            The name as an id, numbered from its second use on.
        """
        plain = ident(name)
        found = next(one for one in chain((plain,), (f"{plain}-{n}" for n in count(2))) if self._is_free(one))
        self._taken |= {found, f"{found}-title", f"{found}-caption"}
        return found

    def _is_free(self, name: str) -> bool:
        return not {name, f"{name}-title", f"{name}-caption"} & self._taken


def ident(text: str) -> str:
    """Make an id of a text: letters, digits, hyphens, underscores.

    Args:
        text: The text.

    Returns:
        The id.
    """
    return _NOT_OF_AN_ID.sub("-", text) or "x"
