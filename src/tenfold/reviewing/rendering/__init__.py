"""A document written down, one module a form; the ending of the file's name says which."""

from __future__ import annotations

from pathlib import Path

from tenfold.errors import AssumptionError
from tenfold.reviewing.document import Document
from tenfold.reviewing.rendering import html

FORMS = (".html",)


def write(document: Document, path: Path, *, interactive: bool = False) -> Path:
    """Write a document in the form that the path's ending names.

    Args:
        document: The document.
        path: Where to write it.
        interactive: Let the charts of a page be drawn by Vega, which the page then carries along.

    Returns:
        The path.

    Raises:
        AssumptionError: There is no such form.
        MissingExtraError: An extra is not installed.
    """
    form = path.suffix.lower()
    if form not in FORMS:
        raise AssumptionError(f'{path}: a review is written as {", ".join(FORMS)}, not "{form}"')
    path.write_text(html.render(document), encoding="utf-8", newline="\n")
    return path
