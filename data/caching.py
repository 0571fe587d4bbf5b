"""The providers' prompt caches, as far as the demo needs them: who reads, who writes, when an entry dies."""

from .company import Model, Workload
from .record import Request

_LONG_S = 3_600


class Cache:
    """The prompt cache of one workload. Requests must come in the order of their start."""

    def __init__(self, work: Workload, model: Model) -> None:
        """Start cold.

        Args:
            work: The workload, for its caching style and the size of its shared head.
            model: Its model, for the provider's lifetime and granularity.
        """
        self._work = work
        self._model = model
        self._head_ends: dict[bool, int] = {}
        self._sessions: dict[int, tuple[int, int]] = {}

    def serve(self, request: Request, *, group: int, prompt: int, fresh: int, long: bool) -> None:
        """Set a request's input counts and move the cache on.

        Args:
            request: The request; its input counts are overwritten.
            group: Its session.
            prompt: All its input, in tokens.
            fresh: The part that this turn adds, in tokens.
            long: Whether its session asks for the long lifetime on the shared head.
        """
        request.input_tokens = prompt
        tail = min(fresh, 3 + fresh % 9)
        if self._work.caching == "broken":
            request.cache_write_tokens = prompt - tail
        elif self._work.caching == "prefix":
            self._read_head(request, long=long)
        elif self._work.caching == "history":
            self._read_history(request, group=group, end=prompt - tail, long=long)

    def _read_head(self, request: Request, *, long: bool) -> int:
        """Read the shared head if it is alive, else write it; returns the tokens of it that were read."""
        now = request.ts_ms
        lifetime_ms = (_LONG_S if long else self._model.lifetime_s) * 1_000
        warm = now <= self._head_ends.get(long, -1)
        self._head_ends[long] = now + lifetime_ms
        head = self._work.system_tokens // self._model.block * self._model.block
        if head < self._model.cache_minimum:
            return 0
        if warm:
            request.cache_read_tokens = head
            return head
        if self._model.writes:
            request.cache_write_tokens = head
            request.cache_write_long_tokens = head if long else 0
        return 0

    def _read_history(self, request: Request, *, group: int, end: int, long: bool) -> None:
        """Read the conversation as far as it is cached, write the rest up to `end` tokens."""
        now = request.ts_ms
        cached, alive_until = self._sessions.get(group, (0, -1))
        self._sessions[group] = (end, now + self._model.lifetime_s * 1_000)
        head = self._read_head(request, long=long)
        read = max(head, cached) if now <= alive_until else head
        read = read // self._model.block * self._model.block
        request.cache_read_tokens = read
        request.cache_write_tokens = end - read
        if read > 0:
            request.cache_write_long_tokens = 0
