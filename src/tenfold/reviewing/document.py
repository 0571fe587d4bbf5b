"""What a review is made of: sections of blocks, and for every number a note on how it was made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from tenfold.charts.theme import AnyChart
    from tenfold.tables import Grid


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
    """A chart with its text alternative.

    Args:
        chart: Altair chart.
        name: Id, unique on a page.
        title: What it is, for those who do not see it.
        text: What it says, figures included.
        made: How its numbers were made.
        caption: What stands under it; the text where it is empty.
    """

    chart: AnyChart
    name: str
    title: str
    text: str
    made: str
    caption: str = ""
    kind: ClassVar[str] = "picture"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of values."""

    grid: Grid
    made: str
    kind: ClassVar[str] = "table"


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


Block: TypeAlias = Heading | Prose | Lines | Tiles | Picture | Table | Card | Text | MadeList


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


@dataclass(frozen=True, slots=True)
class Document:
    """A review before it is written down.

    Args:
        title: Its title.
        subtitle: The line under it.
        sections: Sections in order.
        skipped: Sections left out, with the reason.
    """

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def made(self) -> tuple[Made, ...]:
        """Every note on how numbers were made, once, in the order of the sections."""
        return tuple({note.key: note for section in self.sections for note in section.made}.values())
