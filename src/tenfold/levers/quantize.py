"""Lever 4: weights and KV cache in fewer bits, so that a model fits on fewer GPUs and a step reads less."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, cast

from tenfold.errors import AssumptionError
from tenfold.levers.base import Assumed, Assumption, Bill, Scenario
from tenfold.levers.evals import SCORE_UNITS, read_evals
from tenfold.levers.hosting import HostingLever, Moved, label
from tenfold.levers.sites import Change, Place
from tenfold.levers.tally import fact
from tenfold.levers.values import choice, path
from tenfold.money import shown, usd_text
from tenfold.serving.capacity import pace
from tenfold.serving.replanning import Hosting, rehosted
from tenfold.serving.specs import KV, WEIGHTS, Scheme

# Name in the evals file of the answers of the quantized model.
MODEL = "quantized"
_KEEP = "keep"
_NOTES = {
    "fp8": "FP8 is close to lossless (arXiv 2411.02355 v4, abstract); still compare on your own evals",
    "int8": "INT8 costs 1 to 3 % of accuracy (arXiv 2411.02355 v4, abstract); compare on your own evals",
    "int4": "INT4 weights can cost accuracy on reasoning and long answers: compare on your own evals first",
    "fp4": "FP4 weights can cost accuracy on reasoning and long answers: compare on your own evals first",
}


class Quantize(HostingLever):
    """Fewer bits a weight and a number of the KV cache."""

    name = "quantize"
    number = 4
    assumptions = (
        Assumption("weights", "fp8", f"{', '.join(WEIGHTS)} or keep", "close to lossless", conservative=True,
                   read=choice(*WEIGHTS, _KEEP)),
        Assumption("kv", _KEEP, f"{', '.join(KV)} or keep", "only the weights change", conservative=True,
                   read=choice(*KV, _KEEP)),
        Assumption("quality_evals", None, f'file of scores of model "{MODEL}" by request or feature',
                   "none: quality is not checked", conservative=False, read=path),
    )  # fmt: skip
    meets: tuple[str, ...] = ("continuous_batching", "procure", "speculate")
    effort_days = Decimal(5)
    risk: Literal["low", "medium", "high"] = "medium"
    rule_of_thumb = (
        "6x: that is the concurrency of an 8B model on a 24 GB card with weights and KV cache in FP8; measured "
        "throughput of FP4 against FP8 on a B200 is 1.09x. The money is in whole GPUs that are no longer needed"
    )
    slo_effect = "time per output token falls at the same batch; the limit holds at the batch that is planned with"
    undo = "Serve the original weights again; clients see nothing of it."
    no_table = 'name the numbers in [quantize]: weights = "fp8", and kv = "fp8" if the cache may follow'

    def change(self, assumed: Assumed) -> Change:
        """Say what is changed of a place: its numbers, where they have more bits today.

        Args:
            assumed: The lever's assumptions.

        Returns:
            Function from a place and a scenario to what is changed there.
        """
        weights, kv = _schemes(assumed)

        def changed(place: Place, _scenario: Scenario) -> Hosting:
            now = place.hosted.deployment
            fewer = weights is not None and weights.bits < now.weights.bits
            return Hosting(
                weights=weights if fewer else None, kv=kv if kv is not None and kv.bits < now.kv.bits else None
            )

        return changed

    def refusal(self, place: Place, bill: Bill, assumed: Assumed) -> str:
        """Say why a place cannot be changed: it already has as few bits, or the evals forbid it.

        Args:
            place: The place.
            bill: The log's own bill.
            assumed: The lever's assumptions.

        Returns:
            The reason; empty where it can.
        """
        if place.reason:
            return place.reason
        now = place.hosted.deployment
        weights, kv = _schemes(assumed)
        fewer = [one for one, has in ((weights, now.weights), (kv, now.kv)) if one is not None and one.bits < has.bits]
        if not fewer:
            return f"weights are {now.weights.name} and the KV cache {now.kv.name} already"
        score, least = _score(place, assumed), bill.slo.min_quality
        if score is not None and least is not None and score[0] < least:
            return f'the evals score "{MODEL}" at {score[0]:.4g}, below min_quality {least:g}'
        return ""

    def facts(self, moved: Moved, assumed: Assumed) -> tuple[dict[str, Any], ...]:
        """Say what fewer bits do: to memory, to pace at today's batch, and to quality as far as known.

        Args:
            moved: The place.
            assumed: The lever's assumptions.

        Returns:
            Facts.
        """
        place, site = moved.place, moved.place.site
        assert site is not None
        before, after = moved.before.deployment, moved.after.deployment
        same = after._replace(tp=before.tp)
        tokens = site.load.resident_tokens
        more = same.concurrency(tokens) / before.concurrency(tokens)
        batch = place.hosted.batch
        faster = pace(same, site.load, batch).tokens_per_s / pace(before, site.load, batch).tokens_per_s
        weights, kv = (one.name if one else "as now" for one in _schemes(assumed))
        step = "serving.memory"
        found = [
            fact(label(place, "weights"), weights, "scheme", step),
            fact(label(place, "kv"), kv, "scheme", step),
            fact(label(place, "concurrency_ratio"), f"{more:.2f}", "requests in memory, then over now", step),
            fact(label(place, "pace_ratio"), f"{faster:.2f}", f"at today's batch of {batch:.1f}", "serving.capacity"),
            fact(label(place, "quality"), _quality(place, assumed), "note", "quality_evals"),
        ]
        unchanged = rehosted(site, Hosting(weights=before.weights))
        if unchanged is not None and unchanged.bill_pusd < place.hosted.bill_pusd:
            by = f"USD, with today's numbers on {unchanged.gpus_in_words}: so far the saving needs no other numbers"
            found.append(fact(label(place, "bill_same_numbers_usd"), usd_text(unchanged.bill_pusd), by, step))
        return tuple(found)

    def first_action(self, moved: Moved) -> str:
        """Say what to do first at the place that saves most.

        Args:
            moved: The place.

        Returns:
            One sentence.
        """
        now, then = moved.before.deployment, moved.after.deployment
        parts = [f"{then.weights.name} weights"] if then.weights != now.weights else []
        parts += [f"{then.kv.name} KV cache"] if then.kv != now.kv else []
        gist = f"Serve {moved.place.name} with {' and '.join(parts)} {moved.swap}"
        return f"{gist}: {shown(moved.saved_pusd)} of this window's bill."


def _schemes(assumed: Assumed) -> tuple[Scheme | None, Scheme | None]:
    weights, kv = str(assumed.values["weights"]), str(assumed.values["kv"])
    if weights == kv == _KEEP:
        raise AssumptionError('[quantize]: weights and kv are both "keep", which changes nothing; name one of them')
    return WEIGHTS.get(weights), KV.get(kv)


def _score(place: Place, assumed: Assumed) -> tuple[float, float | None, int] | None:
    """Give the mean score of the quantized model, of the model as it is where scored, and the number of scores."""
    file = assumed.values["quality_evals"]
    if not isinstance(file, Path):
        return None
    frame = read_evals(file, "quantize").frame
    own = frame.filter(model=MODEL)["score_e12"]
    if not len(own):
        raise AssumptionError(f'[quantize] quality_evals: {file}: no score of model "{MODEL}"')
    today = frame.filter(model=place.hosted.model)["score_e12"]
    mean = cast("float", own.mean()) / SCORE_UNITS
    return mean, cast("float", today.mean()) / SCORE_UNITS if len(today) else None, len(own)


def _quality(place: Place, assumed: Assumed) -> str:
    score = _score(place, assumed)
    if score is None:
        weights, kv = (one.name if one else "" for one in _schemes(assumed))
        return "not checked: " + (_NOTES.get(weights) or f"{kv} KV cache: compare on your own evals")
    mean, today, count = score
    beside = "" if today is None else f", {today:.4g} as it is now"
    return f"mean score {mean:.4g} over {count:,} evals{beside}"


LEVER = Quantize()
