"""Logs: one reader per format, quarantine for what is no record, and the load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.logs.anthropic_messages import ANTHROPIC_MESSAGES
from tenfold.logs.litellm_payload import LITELLM_PAYLOAD
from tenfold.logs.litellm_spend import LITELLM_SPEND
from tenfold.logs.mapped import TENFOLD_ROWS
from tenfold.logs.openai_batch import OPENAI_BATCH
from tenfold.logs.openai_chat import OPENAI_CHAT
from tenfold.logs.openai_responses import OPENAI_RESPONSES

if TYPE_CHECKING:
    from tenfold.logs.base import Reader

# Earlier ones win where two fit as many records of a file.
READERS: tuple[Reader, ...] = (
    OPENAI_BATCH,
    OPENAI_RESPONSES,
    ANTHROPIC_MESSAGES,
    LITELLM_PAYLOAD,
    LITELLM_SPEND,
    TENFOLD_ROWS,
    OPENAI_CHAT,
)

from tenfold.logs.loading import load  # noqa: E402 -- the load needs the readers
from tenfold.logs.log import Log, open_log  # noqa: E402

__all__ = ["READERS", "Log", "load", "open_log"]
