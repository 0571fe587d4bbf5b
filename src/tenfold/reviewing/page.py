"""What a review is made of: sections of blocks, and for every number a note on how it was made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import ClassVar, NamedTuple, TypeAlias

from tenfold.extras import need


class Made(NamedTuple):
    """How numbers were made; becomes an entry of the appendix that they link to.

    Args:
        key: Anchor.
        title: What was made.
        how: In words.
        step: The SQL step that computed it, empty where it is arithmetic on other numbers.
    """

    key: str
    title: str
    how: str
    step: str = ""


class Tile(NamedTuple):
    """One number on the first screen."""

    label: str
    value: str
    note: str
    made: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    text: str
    kind: ClassVar[str] = "heading"


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph of plain text; ``made`` links it to how its numbers were made."""

    text: str
    made: str = ""
    kind: ClassVar[str] = "prose"


@dataclass(frozen=True, slots=True)
class Lines:
    """A list of plain lines."""

    items: tuple[str, ...]
    made: str = ""
    kind: ClassVar[str] = "lines"


@dataclass(frozen=True, slots=True)
class Tiles:
    """The numbers of the first screen."""

    items: tuple[Tile, ...]
    kind: ClassVar[str] = "tiles"


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart as SVG from ``charts.to_svg``."""

    svg: str
    caption: str
    made: str
    kind: ClassVar[str] = "picture"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as HTML from ``tables``."""

    html: str
    made: str
    kind: ClassVar[str] = "grid"


@dataclass(frozen=True, slots=True)
class Card:
    """A named list of pairs, each one or more plain lines."""

    title: str
    pairs: tuple[tuple[str, tuple[str, ...]], ...]
    kind: ClassVar[str] = "card"


@dataclass(frozen=True, slots=True)
class Text:
    """Text kept as it is, such as a SQL step; folded away."""

    title: str
    text: str
    kind: ClassVar[str] = "text"


@dataclass(frozen=True, slots=True)
class MadeList:
    """The place for every section's notes on how its numbers were made."""

    kind: ClassVar[str] = "made"


_CODE = re.compile(r"`([^`]+)`")
Block: TypeAlias = Heading | Prose | Lines | Tiles | Picture | Grid | Card | Text | MadeList


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a review."""

    key: str
    title: str
    blocks: tuple[Block, ...]
    made: tuple[Made, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Skipped:
    """A section whose data is absent, with the reason and the way to get it."""

    title: str
    reason: str


def render(title: str, subtitle: str, sections: Sequence[Section], skipped: Sequence[Skipped]) -> str:
    """Make the page.

    Args:
        title: Its title.
        subtitle: The line under it.
        sections: Sections in order.
        skipped: Sections left out.

    Returns:
        HTML in one piece: no script, nothing to load.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    need("jinja2", what="a review")
    import jinja2
    import markupsafe

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["code"] = lambda text: markupsafe.Markup(_marked_up(str(markupsafe.escape(text))))
    template = (resources.files("tenfold.reviewing") / "template.html.j2").read_text(encoding="utf-8")
    made = {note.key: note for section in sections for note in section.made}
    return environment.from_string(template).render(
        title=title, subtitle=subtitle, sections=sections, skipped=skipped, made=list(made.values())
    )


def _marked_up(escaped: str) -> str:
    """Set code as code, and keep a number and its percent sign on one line."""
    return _CODE.sub(r"<code>\1</code>", escaped).replace(" %", "\u00a0%")
