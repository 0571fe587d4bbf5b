"""What a request says, whatever the provider's form: segments in the order that prompt caches read them.

Tools come first, then the system prompt, then every message with its role. Markers that only steer a cache
(``cache_control``, ``cachePoint``) are left out, since they move from turn to turn; images, sound and files stand as
their hash, and make the prompt's tokens unknown.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple, cast

from tenfold.logs.text import attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

# Keys of a request body that hold what is asked, in the order of the prompt.
_TOOLS = ("tools", "functions", "toolConfig", "tool_config", "tool_definitions")
_SYSTEM = ("system", "systemInstruction", "system_instruction", "instructions")
_ASKED = ("messages", "contents", "input", "prompt", "inputText", "inputs", "text")
_PROMPT = (*_TOOLS, *_SYSTEM, *_ASKED)
# Keys that say who asks and how the answer travels: the answer does not depend on them.
_BESIDE = frozenset({
    *("model", "modelId", "user", "metadata", "requestMetadata", "labels", "stream", "stream_options", "store"),
    *("safety_identifier", "prompt_cache_key", "prompt_cache_retention", "cache_control", "service_tier", "background"),
    *("headers", "extra_headers", "timeout", "rid", "request_id", "custom_id", "anthropic_version"),
})  # fmt: skip
_MARKERS = frozenset({"cache_control", "cachePoint"})
_MEDIA_KEYS = frozenset({
    *("image", "image_url", "input_audio", "audio", "video", "video_url", "document", "file", "inlineData"),
    *("inline_data", "fileData", "file_data", "source"),
})  # fmt: skip
_MEDIA_TYPES = frozenset({
    *("image", "image_url", "input_image", "audio", "input_audio", "video", "video_url", "document", "file"),
    *("input_file", "blob", "uri"),
})  # fmt: skip
# A string in a part of media that is longer is its content.
_SHORT = 256
# Keys beside a part's or a message's text that say nothing of their own.
_PLAIN = frozenset({"type", "text", "content", "annotations", "logprobs", *_MARKERS})


class Segment(NamedTuple):
    """One part of a prompt: the tools, the system prompt or a message.

    Args:
        role: Who says it; None is bare text, outside any message.
        pieces: Its texts, in order.
    """

    role: str | None
    pieces: tuple[str, ...]


class Prompt(NamedTuple):
    """A whole request.

    Args:
        segments: In order.
        has_media: Part of it is no text: its tokens are unknown.
    """

    segments: tuple[Segment, ...]
    has_media: bool


def read(raw: object) -> object:
    """Open a logged value: JSON, JSON text in JSON, or plain text.

    Args:
        raw: As logged.

    Returns:
        A JSON value; the text itself where it is none.
    """
    value = raw
    for _ in range(3):
        if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "[", '"'}:
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value


def prompt(value: object) -> Prompt | None:
    """Take a request apart.

    Args:
        value: Request body, list of messages, or text.

    Returns:
        The prompt; None where the value says nothing.
    """
    seen = _Seen()
    told = attributes.request(value)
    segments = tuple(seen.segments(_body(value) if told is None else told))
    return Prompt(segments, seen.has_media) if segments else None


def params(value: object) -> str | None:
    """Take what else the answer depends on: sampling, limits, format.

    Args:
        value: Request body, or its parameters alone.

    Returns:
        Canonical JSON; None where the value is no object.
    """
    told = attributes.params(value)
    value = _body(value) if told is None else told
    if not isinstance(value, dict) or (told is not None and not told):
        return None
    held = cast("dict[str, object]", value)
    return canonical(
        {name: v for name, v in held.items() if v is not None and name not in _BESIDE and not _is_asked(name, v)}
    )


def kept(value: object) -> str | None:
    """Give a request to keep: what was asked, without headers, keys and settings.

    Args:
        value: Request body, list of messages, or text.

    Returns:
        JSON, or plain text; None where nothing was asked.
    """
    told = attributes.request(value)
    value = _body(value) if told is None else told
    if isinstance(value, dict):
        held = cast("dict[str, object]", value)
        if "role" not in held:
            value = {name: held[name] for name in _PROMPT if _is_asked(name, held.get(name))}
    if not value:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_asked(name: str, value: object) -> bool:
    """Tell what is asked from settings: a Responses body has its output format in ``text``."""
    return name in _PROMPT and value is not None and not (name == "text" and isinstance(value, dict))


def _body(value: object) -> object:
    """Give the body of what may be a whole HTTP request."""
    if isinstance(value, dict):
        held = cast("dict[str, object]", value)
        inner = read(held.get("body"))
        if isinstance(inner, dict) and not any(_is_asked(name, held.get(name)) for name in _PROMPT):
            return cast("dict[str, object]", inner)
        return held
    return value


def canonical(value: object) -> str:
    """Write a value so that equal ones are equal text.

    Args:
        value: A JSON value.

    Returns:
        JSON with sorted keys, without cache markers.
    """
    return json.dumps(_Seen().cleaned(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


class _Seen:
    """Walks a request; remembers whether it met media."""

    def __init__(self) -> None:
        self.has_media = False

    def segments(self, value: object) -> Iterator[Segment]:
        if isinstance(value, dict):
            body = cast("dict[str, object]", value)
            if "role" in body or not any(_is_asked(name, body.get(name)) for name in _PROMPT):
                yield from self._message(body)
                return
            for name in _PROMPT:
                held = read(body.get(name))
                if not _is_asked(name, held) or held == []:
                    continue
                if name in _TOOLS:
                    yield Segment("tools", (self._json(held),))
                elif name in _SYSTEM:
                    yield Segment("system", tuple(self._pieces(_content(held))))
                else:
                    yield from self._asked(held)
            return
        yield from self._asked(value)

    def _asked(self, value: object) -> Iterator[Segment]:
        if isinstance(value, list):
            entries = cast("list[object]", value)
            if entries and all(isinstance(entry, int) for entry in entries):
                self.has_media = True  # ids of some tokeniser: no text to count
                yield Segment(None, (self._json(entries),))
                return
            for entry in entries:
                yield from self._message(entry)
        elif value not in (None, ""):
            yield from self._message(value)

    def _message(self, value: object) -> Iterator[Segment]:
        if isinstance(value, list):
            yield Segment(None, tuple(self._pieces(cast("list[object]", value))))
        elif isinstance(value, dict):
            message = cast("dict[str, object]", value)
            if len(message) == 1 and isinstance(message.get("message"), dict):
                message = cast("dict[str, object]", message["message"])
            role = str(message.get("role") or message.get("type") or "")
            content = message.get("content", message.get("parts"))
            rest = {
                name: held
                for name, held in message.items()
                if name not in {"role", "content", "parts", "type", *_MARKERS} and held not in (None, [], "")
            }
            pieces = list(self._pieces(content))
            if rest:
                pieces.append(self._json(rest))
            if pieces:
                yield Segment(role, tuple(pieces))
        elif value not in (None, ""):
            yield Segment(None, (str(value),))

    def _pieces(self, content: object) -> Iterator[str]:
        if isinstance(content, str):
            if content:
                yield content
        elif isinstance(content, list):
            for part in cast("list[object]", content):
                if isinstance(part, dict):
                    yield from self._part(cast("dict[str, object]", part))
                else:
                    yield from self._pieces(part)
        elif isinstance(content, dict):
            yield from self._part(cast("dict[str, object]", content))
        elif content is not None:
            yield self._json(content)

    def _part(self, part: dict[str, object]) -> Iterator[str]:
        text = part.get("text", part.get("content"))
        if isinstance(text, str) and part.keys() <= _PLAIN:
            if text:
                yield text
        elif part.keys() - _MARKERS:
            yield self._json(part)

    def _json(self, value: object) -> str:
        return json.dumps(self.cleaned(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    def cleaned(self, value: object, *, is_media: bool = False) -> object:
        """Leave out cache markers, and put hashes for media."""
        if isinstance(value, dict):
            held = cast("dict[str, object]", value)
            media = is_media or held.get("type") in _MEDIA_TYPES
            self.has_media = self.has_media or media
            return {
                name: self.cleaned(v, is_media=media or self._is_media(name, v))
                for name, v in held.items()
                if name not in _MARKERS
            }
        if isinstance(value, list):
            return [self.cleaned(v, is_media=is_media) for v in cast("list[object]", value)]
        if isinstance(value, str) and len(value) > _SHORT and (is_media or value.startswith("data:")):
            self.has_media = True
            return "media:" + hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return value

    def _is_media(self, name: str, value: object) -> bool:
        found = name in _MEDIA_KEYS and isinstance(value, dict) and not value.keys().isdisjoint(_CONTENT_KEYS)
        self.has_media = self.has_media or found
        return found


# What an object of media holds its content under.
_CONTENT_KEYS = frozenset({"url", "data", "bytes", "uri", "fileUri", "file_uri", "s3Location", "file_id", "file_data"})


def _content(held: object) -> object:
    """Give a system prompt's own content: Gemini's is a message."""
    if isinstance(held, dict):
        message = cast("dict[str, object]", held)
        return message.get("parts", message.get("content", message))
    return held
