"""Allocation: who spent it, what is shared and how, what nobody owns, and the change against the quarter before."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import polars as pl

from tenfold import tables
from tenfold.analysis.allocation import IDLE, Allocation
from tenfold.analysis.tagged import by_tag
from tenfold.display import absent, counted, name_of, percent, sentence
from tenfold.logs.owning import owner_state
from tenfold.money import PUSD_PER_USD, shown
from tenfold.reviewing.document import Block, Heading, Lines, Made, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import Facts
from tenfold.tables import EMPTY, Cell, Column

# Rows of a table; the rest is summed.
_TOP = 15
# Owners whose change is named.
_NAMED = 3
_PARTS = ("direct", "shared out", "allocated")
_HINT = "name them with [[owner]] rules in tenfold.toml and `tenfold owners --db FILE`"


def section(facts: Facts) -> Section | Skipped:
    """Write the section on allocation.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where nothing is priced, or no request says who it was for.
    """
    if not facts.spend_pusd:
        return Skipped("Allocation", "nothing in this quarter has a price, or it was all free; see coverage")
    tag = facts.units.customer_tag
    named = [name for name in ("team", "feature") if name in facts.reading.dimensions]
    if not named and tag is None:
        return Skipped("Allocation", f"no request names a team, a feature or a customer: {_HINT}")
    before = facts.allocation_before
    teams = _compared(_allocated(facts.allocation), None if before is None else _allocated(before))
    owned = {"team": teams}
    if "feature" in named:
        then = None if facts.before is None else _spent(facts.before.composition(["feature"]).frame)
        owned["feature"] = _compared(_spent(facts.composition("feature").frame), then)
    if tag is not None:
        then = None if facts.before is None else _spent(by_tag(facts.before, tag))
        owned["customer"] = _compared(_spent(by_tag(facts.ledger, tag)), then)
    blocks: list[Block] = [Lines(tuple(_said(facts, owned, tag)), "made-allocation")]
    if note := owner_state(facts.ledger.log.store).note:
        blocks.append(Prose(f"{sentence(note)}."))
    for dimension, frame in owned.items():
        made = "made-customers" if dimension == "customer" else "made-allocation"
        blocks += [Heading(f"By {dimension}"), Table(_grid(facts, dimension, frame), made)]
    return Section("allocation", "Allocation", tuple(blocks), (_ALLOCATION, *([_CUSTOMERS] if tag else [])))


_ALLOCATION = Made(
    "made-allocation",
    "Allocation",
    "Direct is the exact cost of the requests that bear an owner's name. What is shared goes to the others by the "
    "method named above, each calendar month by itself, in whole picodollars by largest remainder: the lines sum to "
    "the spend. Unallocated is what neither the log nor the owner rules name. Coverage is the named share of what "
    "requests cost. The quarter before is allocated by the same method and the same rules.",
    "totals",
)
_CUSTOMERS = Made(
    "made-customers",
    "Cost by customer",
    "Exact cost of requests by the value of the tag that names customers; idle GPUs are no customer's.",
    "tag_costs",
)


def _allocated(found: Allocation) -> pl.DataFrame:
    """Give a line a team, and one for what hangs on no request."""
    frame = found.frame.select(
        pl.col("team").alias("name"),
        *(pl.col(f"{name}_pusd").alias(name.replace("_", " ")) for name in ("direct", "shared_out", "allocated")),
        pl.col("total_pusd").alias("total"),
    )
    idle = [(IDLE, *map(Decimal, amounts)) for _, amounts in found.charge_lines()]
    return pl.concat([frame, pl.DataFrame(idle, schema=frame.schema, orient="row")]) if idle else frame


def _spent(frame: pl.DataFrame) -> pl.DataFrame:
    """Give a line a value; one of which nothing is priced has no cost rather than none."""
    blank = (pl.col("requests") > 0) & (pl.col("requests") == pl.col("unpriced_requests"))
    total = pl.when(~blank).then(pl.col("cost_pusd").cast(pl.Decimal(38, 0)))
    return frame.select(pl.col(frame.columns[0]).alias("name"), total.alias("total"))


def _compared(now: pl.DataFrame, before: pl.DataFrame | None) -> pl.DataFrame:
    """Lay the quarter before beside this one; who is in one of them alone spent nothing in the other."""
    if before is None:
        return now
    here, there = pl.lit(value=True).alias("here"), pl.lit(value=True).alias("there")
    both = now.with_columns(here).join(
        before.select("name", pl.col("total").alias("before"), there),
        on="name",
        how="full",
        nulls_equal=True,
        coalesce=True,
    )
    amounts = [name for name in now.columns if name != "name"]
    zero = pl.lit(0).cast(pl.Decimal(38, 0))
    return both.with_columns(
        *(pl.when(pl.col("here").is_null()).then(zero).otherwise(pl.col(name)).alias(name) for name in amounts),
        pl.when(pl.col("there").is_null()).then(zero).otherwise(pl.col("before")).alias("before"),
    ).drop("here", "there")


def _said(facts: Facts, owned: dict[str, pl.DataFrame], tag: str | None) -> list[str]:
    """Say how much has an owner, what changed most, how shared costs are allocated, and what it is in other money."""
    spend = facts.reading.spend_pusd
    shares = [
        f"{percent(_coverage(frame, spend), 1)} {'names a' if name == 'team' else 'a'} {_dimension(name, tag)}"
        for name, frame in owned.items()
    ]
    lines = [f"Allocation coverage: of {shown(spend)} that requests cost, {', '.join(shares)}."]
    free = _unnamed(owned["team"])
    lines.append(f"Unallocated: {shown(free)} of it has no team{f'; {_HINT}' if free else ''}.")
    if facts.before is None:
        lines.append(f"The log has no request in {facts.previous.title}: there is no change to show.")
    elif facts.allocation_before is None:
        lines.append(f"{facts.previous.title} cannot be allocated by this method, so no change by team is shown.")
    else:
        lines.append(_largest(facts, owned["team"]))
    lines += [f"{sentence(line)}." for line in facts.allocation.sentences()]
    if beside := facts.beside(facts.spend_pusd):
        source = facts.settings.currency.source if facts.settings.currency else ""
        lines.append(f"The spend of {shown(facts.spend_pusd)} is {beside}{f' ({source})' if source else ''}.")
    return lines


def _dimension(name: str, tag: str | None) -> str:
    return f'{name} (tag "{tag}")' if name == "customer" else name


def _unnamed(frame: pl.DataFrame) -> int:
    """Give what nobody owns, before anything of it is allocated."""
    column = "direct" if "direct" in frame.columns else "total"
    return int(frame.filter(pl.col("name").is_null())[column].sum() or 0)


def _coverage(frame: pl.DataFrame, spend_pusd: int) -> Fraction | None:
    return 1 - Fraction(_unnamed(frame), spend_pusd) if spend_pusd else None


def _largest(facts: Facts, frame: pl.DataFrame) -> str:
    changes = frame.select("name", (pl.col("total") - pl.col("before")).alias("change")).drop_nulls("change")
    rows = [(name_of("team", name), int(change)) for name, change in changes.rows()]
    rows = sorted((row for row in rows if row[1]), key=lambda row: (-abs(row[1]), row[0]))[:_NAMED]
    said = ", ".join(f"{name} {'+' if change > 0 else ''}{shown(change)}" for name, change in rows)
    return f"Largest changes against {facts.previous.title}: {said or 'none'}."


def _grid(facts: Facts, dimension: str, frame: pl.DataFrame) -> tables.Grid:
    is_shared = "direct" in frame.columns and bool(frame.select(pl.sum("shared out", "allocated")).sum_horizontal()[0])
    parts = _PARTS if is_shared else ()
    has_before = "before" in frame.columns
    amounts = [*parts, "total", *(["before"] if has_before else [])]
    lines = _lines(dimension, frame.select("name", *amounts))
    total = tuple(None if cells is None else int(cells) for cells in frame.select(pl.sum(*amounts)).row(0))
    currency = facts.settings.currency
    columns = [
        Column(dimension, dimension),
        *(Column(name.replace(" ", "-"), name, "pusd", sums=True) for name in parts),
        Column("total", "total" if parts else "cost", "pusd", sums=True),
        Column("share", "share", "ratio", share_of="total"),
        *([Column("currency", f"in {currency.code}", "number", 2, sums=True)] if currency else []),
    ]
    if has_before:
        columns += [
            Column("before", facts.previous.title, "pusd", sums=True),
            Column("change", "change", "pusd", sums=True),
            Column("ratio", "change, relative", "ratio"),
        ]
    rate = Fraction(currency.per_usd) if currency else None
    rows = [
        _cells(name, dict(zip(amounts, values, strict=True)), total[len(parts)] or 0, parts, rate)
        for name, values in [*lines, ("total", total)]
    ]
    note = "Total: direct, less what others carry, plus what it carries of others." if parts else ""
    return tables.grid(
        f"table-allocation-{dimension}", f"Cost by {dimension}", columns, rows, note=note, has_total=True
    )


def _lines(dimension: str, frame: pl.DataFrame) -> list[tuple[str, tuple[int | None, ...]]]:
    """Order owners by cost, sum those beyond the largest, and put idle time and what nobody owns last."""
    apart = pl.col("name").is_null() | (pl.col("name") == IDLE)
    owners = frame.filter(~apart.fill_null(value=True)).sort(
        pl.col("total").fill_null(0), "name", descending=[True, False]
    )
    shown_rows = owners if len(owners) <= _TOP + 1 else owners[:_TOP]
    lines = [(name_of(dimension, row[0]), _whole(row[1:])) for row in shown_rows.rows()]
    if len(owners) > len(shown_rows):
        rest = owners[_TOP:]
        blank = rest["total"].null_count()
        name = counted(len(rest), "other") + (f", {blank} not priced" if blank else "")
        lines.append((name, _whole(rest.select(pl.sum(*frame.columns[1:])).row(0))))
    lines += [(IDLE, _whole(row[1:])) for row in frame.filter(pl.col("name") == IDLE).rows()]
    none = frame.filter(pl.col("name").is_null()).rows()
    # a line also where it is zero: that nothing is hidden is to be seen
    return [*lines, (absent(dimension), _whole(none[0][1:]) if none else (0,) * (len(frame.columns) - 1))]


def _whole(values: Sequence[Decimal | None]) -> tuple[int | None, ...]:
    return tuple(None if value is None else int(value) for value in values)


def _cells(
    name: str, found: dict[str, int | None], whole: int, parts: Sequence[str], rate: Fraction | None
) -> list[Cell]:
    total = found["total"]
    made: list[Cell] = [name, *(found[part] for part in parts), "not priced" if total is None else total]
    made.append(EMPTY if total is None or not whole else Fraction(total, whole))
    if rate is not None:
        made.append(None if total is None else Fraction(total, PUSD_PER_USD) * rate)
    if "before" in found:
        before = found["before"]
        change = None if total is None or before is None else total - before
        relative = "new" if total and before == 0 else None
        made += [before, change, Fraction(change, before) if change is not None and before else relative]
    return made
