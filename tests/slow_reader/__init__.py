"""A second, slow reader of every log format: plain Python, line by line, for the fast one to be held against.

It reads a file's bytes as one named format and says of each line whether it is a request (and with which counts),
part of another one, beside the requests, or no record. It is written from the formats' notes and shares no code with
the package.
"""

from __future__ import annotations

from slow_reader import answers, gateways, observations, sessions, spans, streams
from slow_reader.core import Result, Row, read
from slow_reader.counts import COLUMNS

ROOMS = (answers, gateways, streams, sessions, spans, observations)
FORMATS = {one.name: one for room in ROOMS for one in room.FORMATS}

__all__ = ["COLUMNS", "FORMATS", "Result", "Row", "read"]
