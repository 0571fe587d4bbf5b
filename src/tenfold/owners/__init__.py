"""Who owns what, as a project says it in ``tenfold.toml`` and spreadsheets, and how shared costs are allocated."""

from tenfold.owners.rules import CONDITIONS, LOGGED, NONE, TAG, Owners, Rule
from tenfold.owners.sharing import BASES, METHODS, Sharing
from tenfold.owners.tables import from_table

__all__ = [
    "BASES",
    "CONDITIONS",
    "LOGGED",
    "METHODS",
    "NONE",
    "TAG",
    "Owners",
    "Rule",
    "Sharing",
    "from_table",
]
