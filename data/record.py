"""One invented request, as the generator knows it before any provider's format hides part of it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

Source: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic_messages", "litellm_spendlogs", "gateway"]
Status: TypeAlias = Literal["success", "incomplete", "error", "cancelled"]
Flag: TypeAlias = Literal["bad_count", "cache_gt_input", "stream_without_usage"]

START = datetime(2026, 7, 1, tzinfo=UTC)
DAYS = 92
END_MS = DAYS * 86_400_000
"""The end of the quarter (2026-10-01, excluded), in milliseconds after `START`."""


@dataclass(slots=True)
class Request:
    """One provider call.

    `ts_ms` counts milliseconds from `START`. Token counts follow the inclusive convention: cache reads and
    writes are part of `input_tokens`, long-lived writes part of `cache_write_tokens`, reasoning part of
    `output_tokens`. `flag` names the harm that the writer does to the line; the true counts stay here.
    """

    source: Source
    ts_ms: int
    duration_ms: int
    ttft_ms: int | None
    team: str
    feature: str
    user: str
    session: str | None
    environment: str
    api_key: str
    provider: str
    model: str
    tier: str
    stream: bool
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_long_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    web_searches: int = 0
    attempt: int = 0
    retry_of: "Request | None" = None
    status: Status = "success"
    finish: str = "stop"
    http_status: int = 200
    gateway_cache_hit: bool = False
    flag: Flag | None = None
    request_id: str = ""
    line: int = 0

    @property
    def counted(self) -> bool:
        """Whether its tokens belong in a bill.

        Returns:
            True for a billable request with known usage that no gateway cache answered.
        """
        return self.status in ("success", "incomplete") and self.flag is None and not self.gateway_cache_hit

    @property
    def start(self) -> datetime:
        """When it began.

        Returns:
            An aware UTC time, to the millisecond.
        """
        return START + timedelta(milliseconds=self.ts_ms)
