"""OpenAI Responses API: one response object a line."""

from __future__ import annotations

from tenfold.logs import envelope, openai_response, openai_tools
from tenfold.logs.base import Detect, Other, Reader, Text
from tenfold.logs.text import forms
from tenfold.usage.shapes import OPENAI_RESPONSES as SHAPE

_SETTINGS = (
    "json_object('temperature', r.temperature, 'top_p', r.top_p, 'max_output_tokens', r.max_output_tokens, "
    "'reasoning', r.reasoning, 'text', r.text, 'tool_choice', r.tool_choice)::VARCHAR"
)

OPENAI_RESPONSES = Reader(
    name="openai_responses",
    kinds=("ndjson",),
    one_request="id",
    shape=SHAPE,
    usage="r.usage",
    leaves={**openai_response.leaves(), **envelope.LEAVES},
    fields=envelope.with_metadata(openai_response.fields()),
    ts=f"coalesce({envelope.TS}, {openai_response.created('r')})",
    dedup_key=openai_response.dedup_key(),
    counts=openai_tools.counts("r"),
    detect=Detect(
        keys=(("usage.input_tokens_details",), ("usage.output_tokens_details.reasoning_tokens",)),
        values={"object": ("response",)},
        others=(Other("OpenAI Chat Completions", "object", ("chat.completion", "chat.completion.chunk")),),
        records=(("error", "id"), ("error", "model"), ("error", "_log")),
    ),
    text=Text(
        leaves={
            **forms.REQUEST_LEAVES,
            **dict.fromkeys(("input", "instructions"), "JSON"),
            **dict.fromkeys(("temperature", "top_p", "max_output_tokens", "reasoning", "text", "tool_choice"), "JSON"),
            **dict.fromkeys(("tools[].name", "tools[].description", "tools[].parameters"), "JSON"),
            **forms.output(""),
        },
        prompt=f"coalesce({forms.REQUEST}, "
        f"{forms.asked(tools='to_json(r.tools)', instructions='r.instructions', input='r.input')})",
        # The answer repeats the settings that it was made with.
        params=f"coalesce({forms.REQUEST}, CASE WHEN r.input IS NOT NULL THEN {_SETTINGS} END)",
        response=forms.output_said("r"),
    ),
)
