"""A document written down, one module a form; the ending of the file's name says which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from tenfold.errors import AssumptionError
from tenfold.files import in_place
from tenfold.reviewing.document import Document
from tenfold.reviewing.rendering import html, markdown, pdf, workbook

Maker: TypeAlias = Callable[[Document], str | bytes]

FORMS: Mapping[str, Maker] = {
    ".html": html.render,
    ".md": markdown.render,
    ".xlsx": workbook.render,
    ".pdf": pdf.render,
}


def write(document: Document, path: Path, *, interactive: bool = False) -> Path:
    """Write a document in the form that the path's ending names.

    Args:
        document: The document.
        path: Where to write it.
        interactive: Let the charts of a page be drawn by Vega, which the page then carries along.

    Returns:
        The path.

    Raises:
        AssumptionError: There is no such form or folder, or it cannot be interactive.
        OSError: It cannot be written; what stood there before stays as it was.
        MissingExtraError: An extra is not installed.
    """
    form = form_of(path)
    if interactive and form != ".html":
        raise AssumptionError(f"{path}: only a page (.html) can be interactive")
    made = html.render(document, interactive=True) if interactive else FORMS[form](document)
    with in_place(path) as part:
        part.write_bytes(made.encode("utf-8") if isinstance(made, str) else made)
    return path


def form_of(path: Path) -> str:
    """Tell the form that a path asks for by its ending.

    Args:
        path: Where a review is to be written.

    Returns:
        One of ``FORMS``.

    Raises:
        AssumptionError: There is no such form.
    """
    form = path.suffix.lower()
    if form not in FORMS:
        raise AssumptionError(f'{path}: a review is written as {", ".join(FORMS)}, not "{form}"')
    return form
