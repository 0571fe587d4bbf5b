"""Providers' usage objects: one table of shapes, read by the log readers and the single price call alike."""

from __future__ import annotations

from tenfold.usage.keywords import Usage
from tenfold.usage.normalise import Tokens, tokens_from
from tenfold.usage.shape import UsageShape
from tenfold.usage.shapes import SHAPES

__all__ = ["SHAPES", "Tokens", "Usage", "UsageShape", "tokens_from"]
