"""The second opinion: tenfold's own behind the protocol, the vendor's where it is installed and refused where not."""

from __future__ import annotations

import logging
from importlib.util import find_spec

import pytest

from tenfold.errors import ServingError
from tenfold.extras import MissingExtraError
from tenfold.serving import roofline, specs
from tenfold.serving.memory import Deployment
from tenfold.serving.second_opinion import Aiconfigurator, Estimator, Load, Roofline

IS_INSTALLED = find_spec("aiconfigurator") is not None
LOAD = Load(64, 1024, 1024)


def replica(model="llama-3.1-70b", gpu="h200-sxm", tp=2, weights="fp8", kv="bf16"):
    return Deployment(specs.model(model), specs.gpu(gpu), tp, specs.WEIGHTS[weights], specs.KV[kv])


def test_the_roofline_is_an_estimator():
    own: Estimator = Roofline()
    found = own.estimate(replica(), LOAD)
    speed = roofline.speed(replica(), 64, 1024, 1024)
    assert found == (speed.ttft_s, speed.tpot_s, speed.tokens_per_s_per_gpu, "roofline")
    assert Roofline(scale=1.1).estimate(replica(), LOAD).tpot_s == pytest.approx(found.tpot_s / 1.1)
    # of more requests than fit, those that fit
    crowd = own.estimate(replica(), Load(100_000, 1024, 1024))
    assert crowd.tpot_s == roofline.speed(replica(), replica().concurrency(1536), 1024, 1024).tpot_s


@pytest.mark.skipif(IS_INSTALLED, reason="aiconfigurator is installed")
def test_without_the_package_the_error_says_how_to_get_it():
    with pytest.raises(MissingExtraError, match=r'second opinion needs aiconfigurator.*pip install "tenfold\[aic\]"'):
        Aiconfigurator().estimate(replica(), LOAD)


@pytest.mark.skipif(not IS_INSTALLED, reason="aiconfigurator is not installed (extra aic)")
def test_the_vendors_model_is_near_and_labelled():
    vendor: Estimator = Aiconfigurator()
    found = vendor.estimate(replica(), LOAD)
    assert found.label == "vendor model (aiconfigurator, vllm)"
    assert found.tokens_per_s_per_gpu == pytest.approx(
        Roofline().estimate(replica(), LOAD).tokens_per_s_per_gpu, rel=0.2
    )
    assert found.tokens_per_s_per_gpu == pytest.approx(1268.7, rel=0.01)  # 0.12.0, as run on 2026-11-30
    assert logging.root.manager.disable == 0


@pytest.mark.skipif(not IS_INSTALLED, reason="aiconfigurator is not installed (extra aic)")
@pytest.mark.parametrize(
    ("one", "message"),
    [
        (("llama-2-7b", "h200-sxm", 1, "bf16", "bf16"), "no config of it"),
        (("llama-3.1-70b", "mi300x", 1, "fp8", "bf16"), "no tables of it"),
        (("llama-3.1-70b", "h100-sxm", 1, "fp8", "bf16"), "OOM"),
        (("llama-3.1-70b", "b200", 1, "fp8", "fp4"), "a KV cache in fp4"),
    ],
)
def test_what_it_does_not_know_it_is_not_asked(one, message):
    with pytest.raises(ServingError, match=message):
        Aiconfigurator().estimate(replica(*one), LOAD)
