"""The page of a diagnosis: what it says is the diagnosis, every number links to how it was made, nothing is loaded."""

import re
from dataclasses import replace
from html import unescape

import diagnoses as made
import pytest

from tenfold.latency.diagnosis import Diagnoses
from tenfold.latency.windows import Share
from tenfold.reviewing.diagnosed import Asked, diagnosis_page


def page_of(*found, mix=(), asked=None):
    return diagnosis_page(Diagnoses(found, tuple(mix)), asked=asked).html


def text_of(html):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html[html.index("<body>") :])).split()).replace("\u00a0", " ")


def test_says_answer_causes_and_what_to_do():
    html = page_of(made.lost_host())
    text = text_of(html)
    assert "Explained: host lost (gpu-03), 92 % of the TTFT shift." in text
    assert "1 · Step 6, host lost (gpu-03) share 92 % [81, 100] of the TTFT shift" in text
    assert "└ Step 7, retries share 32 % [24, 40] of the shift, a consequence of step 6" in text
    assert "p99 TTFT 14.2 s 0.31 s before; +13.9 [9.8, 18.1]" in text
    # before + cause + rest = after, told to those who do not see the picture: 0.31 + 12.78 + 1.11 = 14.20
    assert "before 0.31, host lost (gpu-03), with queueing and retries 12.8, unexplained 1.1, after 14.2" in text
    assert html.count("<svg") == 1  # without the windows there is no picture of time
    targets = set(re.findall(r'href="#([^"]+)"', html))
    assert targets <= set(re.findall(r'id="([^"]+)"', html))


@pytest.mark.full
def test_every_model_has_a_section_and_the_mix_a_table():
    mix = [Share("llama-3.1-70b", 900, 600, 0.9, 0.6), Share("qwen3-32b", 100, 400, 0.1, 0.4)]
    text = text_of(page_of(made.diagnosis(), made.no_change(), mix=mix))
    assert "What moved llama-3.1-70b" in text
    assert "qwen3-32b 100 400 10.0 % 40.0 %" in text
    assert "no model being slower" in text


def test_what_was_asked_is_repeated():
    asked = Asked(["a.parquet", "b.parquet"], ["c.parquet"], "team = 'x'", "tenfold diagnose --before a.parquet")
    text = text_of(page_of(made.refused(), asked=asked))
    assert "model: llama-3.1-70b · before: 184,209 requests" in text
    assert "· where team = 'x'" in text
    assert "Before: a.parquet b.parquet After: c.parquet Where: team = 'x' Made with: tenfold diagnose" in text
    several = text_of(page_of(made.refused(), made.refused(), asked=asked))
    assert several.index("2 models: llama-3.1-70b, llama-3.1-70b") < several.index("184,209")


def test_refused_says_why_and_what_to_measure():
    text = text_of(page_of(made.refused()))
    assert "No diagnosis: the model's revision changed" in text
    assert "What to measure next send a sample of the same prompts" in text


def test_names_from_logs_are_text():
    assert "<script>" not in page_of(replace(made.refused(), notes=("<script>x</script>",)))
