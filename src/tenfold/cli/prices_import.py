"""``tenfold prices import``: what another package's price table would add to the price files, as a diff."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from tenfold.cli.common import Json, print_json
from tenfold.errors import AssumptionError, near
from tenfold.prices import price_book
from tenfold.prices.files import shipped, toml_files
from tenfold.prices.importing import genai_prices, litellm
from tenfold.prices.importing.propose import Proposal, propose
from tenfold.prices.importing.quotes import Reading
from tenfold.prices.words import PROVIDERS, canonical_provider

_SHOWN = 12


def import_prices(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="genai-prices or litellm, as installed here.", show_default=False)
    ],
    provider: Annotated[str | None, typer.Option("--provider", metavar="P", help="Only this provider.")] = None,
    file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="litellm's price JSON, where it is not installed.")
    ] = None,
    prices: Annotated[
        Path | None, typer.Option("--prices", metavar="DIR", help="Price files to add to; default the shipped ones.")
    ] = None,
    json: Json = False,
) -> None:
    """Print, as a diff, what another package's prices would add to the price files. Nothing is written."""
    made = propose(
        _reading(source, provider, file),
        price_book(prices),
        toml_files(shipped() if prices is None else prices),
        datetime.now(tz=UTC),
    )
    if json:
        print_json(_as_dict(made))
        return
    sys.stdout.write("".join(made.diffs().values()))
    for line in _summary(made):
        sys.stderr.write(line + "\n")


def _reading(source: str, provider: str | None, file: Path | None) -> Reading:
    only = None if provider is None else canonical_provider(provider)
    if only is not None and only not in PROVIDERS:
        raise AssumptionError(f'--provider: no provider "{provider}".{near(only, PROVIDERS)}')
    name = source.strip().lower().replace("_", "-")
    if name == genai_prices.PACKAGE:
        if file is not None:
            raise AssumptionError("--from names litellm's price JSON; genai-prices is read as installed")
        return genai_prices.read(only)
    if name == litellm.PACKAGE:
        return litellm.read(file, only)
    known = (genai_prices.PACKAGE, litellm.PACKAGE)
    raise AssumptionError(f'"{source}" is no source; write {" or ".join(known)}.{near(name, known)}')


def _as_dict(made: Proposal) -> dict[str, object]:
    diffs = made.diffs()
    return {
        "package": made.reading.package,
        "version": made.reading.version or None,
        "card_version": made.card_version,
        "values": dict(made.outcomes),
        "added": [
            {
                "provider": one.provider,
                "model": one.model,
                "service_tier": one.service_tier,
                "region": one.region or None,
                "valid_from": None if one.valid_from is None else one.valid_from.isoformat(),
                "why": one.why,
                "differences": {name: {"from_usd": old, "to_usd": new} for name, (old, new) in one.differences.items()},
            }
            for one in made.added
        ],
        "files": [{"file": name, "diff": text} for name, text in diffs.items()],
        "not_proposed": dict(made.skipped),
        "left_out": dict(made.reading.left_out),
    }


def _summary(made: Proposal) -> list[str]:
    values = made.outcomes
    lacking = values["no_model"] + values["no_list"] + values["no_rate"]
    counts = f"{values['equal']:,} values equal, {values['differs']:,} differ, {lacking:,} only there"
    without = f"{values['ambiguous']:,} where the book says why it has none"
    lines = [f"{made.reading.name} against card {made.card_version}: {counts}, {without}"]
    for why, words in (("new_model", "of new models"), ("new_list", "of new tiers or regions"), ("changed", "changed")):
        found = [one for one in made.added if one.why == why]
        lines += [f"  {len(found):,} price lists {words}"] if found else []
    lines += [f"  not proposed: {count:,} x {why}" for why, count in made.skipped.items()]
    if made.reading.left_out:
        lines.append(f"  left out, no meter or provider here: {_few(made.reading.left_out)}")
    return lines


def _few(counts: Mapping[str, int]) -> str:
    shown = [f"{name} ({count:,})" for name, count in list(counts.items())[:_SHOWN]]
    rest = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more (--json lists all)" if rest > 0 else "")
