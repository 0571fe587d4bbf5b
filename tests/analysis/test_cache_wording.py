"""Why two prompts differ, named from their texts: one case a kind, in the forms of several providers."""

import json

import pytest

from tenfold.analysis.cache_breaks.wording import WORDS, cause

SEARCH = {"name": "search", "input_schema": {"type": "object"}}
FETCH = {"name": "fetch", "input_schema": {"type": "object"}}


def body(system="You help.", tools=(SEARCH, FETCH), turns=("hello",)):
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(turns)]
    return json.dumps({"system": system, "tools": list(tools), "messages": messages})


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (body("Now: 2026-07-01T09:13:34Z. Help."), body("Now: 2026-07-01T09:13:35Z. Help."), "timestamp"),
        (body("Today is July 1, 2026. Help."), body("Today is July 2, 2026. Help."), "timestamp"),
        (body("Today is Wed, 01 Jul 2026"), body("Today is Thu, 02 Jul 2026"), "timestamp"),
        (body("It is 9:13 AM."), body("It is 9:14 AM."), "timestamp"),
        (body("ts=1782900814 Help."), body("ts=1782900999 Help."), "timestamp"),
        (
            body("Session 6f1d2c3b-1111-4222-8333-944455556666."),
            body("Session 6f1d2c3b-1111-4222-8333-944455557777."),
            "uuid",
        ),
        (body("Trace req_ab12cd34 Help."), body("Trace req_zz98yy76 Help."), "id"),
        (body("Call number 17. Help."), body("Call number 18. Help."), "counter"),
        (body(tools=(SEARCH, FETCH)), body(tools=(FETCH, SEARCH)), "tools_reordered"),
        (body(tools=(SEARCH, FETCH)), body(tools=(SEARCH,)), "tools_changed"),
        (
            body(tools=({**SEARCH, "description": "as of 2026-07-01"},)),
            body(tools=({**SEARCH, "description": "as of 2026-07-02"},)),
            "timestamp",
        ),
        (body(tools=()), body(), "tools_moved"),
        (body("You help."), body("You are brief."), "system_changed"),
        (body(turns=("a", "b", "c")), body(turns=("summary of it all", "d")), "history_rewritten"),
        (body(turns=("a", "b", "c")), body(turns=("a", "b")), "history_rewritten"),
        (body(turns=("what is 2 and 2?",)), body(turns=("what is 3 and 3?",)), "last_message_replaced"),
        (body(turns=("a",)), body(turns=("a", "b", "c")), "same"),
        ("Say 1 thing", "Say 1 thing, then another", "same"),
        ("red", "blue", "text_changed"),
        ("", "red", "unreadable"),
    ],
)
def test_one_of_each(before, after, name):
    assert cause(before, after)[0] == name
    assert name in WORDS


def test_a_chat_completion_and_a_gemini_request():
    def chat(now):
        return json.dumps([{"role": "system", "content": f"Date: {now}"}, {"role": "user", "content": "hi"}])

    def gemini(text):
        return json.dumps(
            {
                "systemInstruction": {"parts": [{"text": text}]},
                "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            }
        )

    assert cause(chat("2026-07-01"), chat("2026-08-01")) == ("timestamp", 0)
    assert cause(gemini("be kind"), gemini("be brief")) == ("system_changed", 0)


def test_where_it_differs():
    assert cause(body("a"), body("b"))[1] == 1  # tools are segment 0
    assert cause(body(turns=("a", "b", "c")), body(turns=("a", "x", "c")))[1] == 3
