"""What is no usage object at all is refused in words, with an example."""

from __future__ import annotations

import pytest

import tenfold as tf
from tenfold.errors import UsageError
from tenfold.usage import tokens_from


@pytest.mark.parametrize("usage", ["10 tokens", None, 10, [("input_tokens", 10)], b"x" * 500, "", {}, tf.Usage()])
def test_what_is_no_mapping_or_empty_is_refused_with_an_example(usage):
    with pytest.raises(UsageError, match="input_tokens") as caught:
        tokens_from(usage)
    assert len(str(caught.value)) < 250
    assert ("is empty" in str(caught.value)) == (not isinstance(usage, (str, bytes, int, list)) and usage is not None)


def test_the_single_call_refuses_it_too():
    with pytest.raises(UsageError, match="no mapping"):
        tf.price(provider="openai", model="gpt-5", at="2026-10-01", usage="10 tokens")


def test_keys_that_are_no_text_are_named():
    with pytest.raises(UsageError, match="1, b"):
        tokens_from({1: 5, "b": 2})
