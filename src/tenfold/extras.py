"""Libraries that only an extra brings: asked for at the moment of use, with the command that installs them."""

from __future__ import annotations

from importlib.util import find_spec

from tenfold.errors import TenfoldError


class MissingExtraError(TenfoldError):
    """A library that an extra of tenfold brings is not installed; the message holds the command."""


def need(*modules: str, what: str, extra: str = "report") -> None:
    """Ask for libraries before they are imported.

    Args:
        modules: Import names.
        what: What is to be made with them, for the message.
        extra: The extra of tenfold that brings them.

    Raises:
        MissingExtraError: One is not installed.
    """
    absent = [module for module in modules if find_spec(module) is None]
    if absent:
        raise MissingExtraError(
            f'{what} needs {", ".join(absent)}, not installed here. Install with: pip install "tenfold[{extra}]"'
        )
