"""A second implementation of the API-side levers: slow, plain, request by request, importing nothing from tenfold.

Requests are dicts with the column names of the requests table. An assumptions table is a dict as in the assumptions
file, except that `where`, `admit` and `rule` are Python functions of a request and `evals` is a list of dicts.
"""

from oracle_levers.portfolio import Portfolio
from oracle_levers.rules import Rule, read_rules

__all__ = ["Portfolio", "Rule", "read_rules"]
