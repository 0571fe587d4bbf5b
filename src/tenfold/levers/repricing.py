"""Changing a bill: the log with its marks, priced once, and a lever's change tried and priced by the one function."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tenfold.errors import AssumptionError, StepError
from tenfold.ledger.periods import local_day
from tenfold.ledger.session import Session
from tenfold.levers.base import Assumed, Bill, Change, Judged, Lever, Marking
from tenfold.levers.sites import Sites
from tenfold.levers.tally import Tally
from tenfold.levers.values import Predicate
from tenfold.levers.where import check_shared
from tenfold.prices.meters import Meter
from tenfold.slo import Slo
from tenfold.store import schema, steps
from tenfold.store.cells import CACHED_MEDIA

# Columns that the log gets for every lever, beside those of requests and each lever's own two marks.
SHARED_MARKS = ("next_ts", "is_rebilled")
# Counts that every version of a request bears, whatever the log holds.
_OFTEN_ASKED = ("ts", "session_id", "prefix_hashes")
_ALWAYS = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens"),
    *("output_tokens", "reasoning_tokens"),
)
# Columns of every version of a request, before and after the counts.
VERSION_HEAD = ("rid", "call_id", "block_day", "user_bucket", "ts", "price_key")
VERSION_TAIL = ("cost_pusd", "set_pusd", "is_kept", "reach", "touch", "levers", "combo", "world")


def counts_in_use(session: Session) -> tuple[str, ...]:
    """List the counts that versions of the requests bear: the usual ones, and what else is above zero somewhere.

    Args:
        session: The priced session.

    Returns:
        Columns in the order of the schema.
    """
    used = {*_ALWAYS, *session.counts}
    if any(name.startswith("input_") and name != "input_tokens" for name in session.counts):
        used.update(CACHED_MEDIA)
    return tuple(name for name in schema.TOKEN_COLUMNS if name in used)


def mark_of(lever: str, key: str) -> str:
    """Name the mark of requests for which one of a lever's predicates holds: its ``where``, or another key."""
    return f"in_{lever}" if key == "where" else f"{lever}_{key}"


def mark_allowed(lever: str) -> str:
    """Name the mark of requests that the service levels leave to a lever."""
    return f"allowed_{lever}"


def own_bill(
    session: Session,
    levers: Sequence[Lever],
    assumed: Mapping[str, Assumed],
    slo: Slo,
    *,
    sites: Sites | None = None,
    fixed_pusd: int = 0,
) -> Bill:
    """Price the log once, with what each lever may touch decided on the requests as logged.

    Args:
        session: The priced session.
        levers: The levers.
        assumed: What is assumed for each.
        slo: The service levels.
        sites: Where self-hosted models run; None without a fleet.
        fixed_pusd: Charges that hang on no request, in pUSD.

    Returns:
        The log's own bill: one row a request of the window, in ``lever_base``; the log itself is in ``lever_log``.

    Raises:
        AssumptionError: A predicate cannot be evaluated on this log (a cast that one of its values does not survive).
    """
    marks: dict[str, str] = {}
    for one in levers:
        own = assumed[one.name]
        other = {key: value for key, value in own.values.items() if isinstance(value, Predicate)}
        for key, predicate in {"where": own.where or "true", **other}.items():
            _try(session, one.name, key, predicate)
            marks[mark_of(one.name, key)] = predicate
    marks |= {mark_allowed(one.name): one.allowed(slo, assumed[one.name]) for one in levers}
    more = {
        name: sql
        for one in levers
        if isinstance(one, Marking)
        for name, sql in one.marks(slo, assumed[one.name]).items()
    }
    columns = schema.names("requests")
    steps.run(
        session.engine,
        "lever_log",
        row_id=session.engine.row_id,
        columns=listed(columns, "requests", "  "),
        marks="".join(f",\n  coalesce((\n{text}\n), false) as {mark}" for mark, text in marks.items())
        + "".join(f",\n  {text} as {name}" for name, text in more.items()),
    )
    session.price("lever_log", "lever_log_priced")
    counts = counts_in_use(session)
    context = dict.fromkeys(column for one in levers for column in one.columns)
    meters = (f"{meter.name}_pusd" for meter in session.meters)
    shared = (name for name in context if name not in ("ts", "feature"))
    kept = (*shared, *counts, *marks, *more, *meters)
    zone = session.window.zone
    steps.run(
        session.engine,
        "lever_base",
        materialised=True,
        priced="lever_log_priced",
        day="p.day" if zone == "UTC" else local_day(zone, "p.priced_at"),
        columns=listed(kept, "p", "  "),
        cost=cost("p", session.meters),
    )
    whole = (*VERSION_HEAD, "price_status", "is_billed", "feature", "team", "model", *kept, *SHARED_MARKS, "cost_pusd")
    needs = {column for one in levers for group in one.needs for column in group}
    filled = _counted(session, {*needs, *_OFTEN_ASKED})
    return Bill(session, "lever_base", whole, fixed_pusd, filled=filled, slo=slo, sites=sites)


def _try(session: Session, lever: str, key: str, predicate: str) -> None:
    if predicate == "true":
        return
    if session.engine.name != "DuckDB":
        check_shared(predicate, f"[{lever}] {key}", session.engine.name)
    try:
        # in the form in which it is laid over the log: a filter may stop early where a projection does not
        session.engine.fetch(
            f"select sum(case when coalesce((\n{predicate}\n), false) then 1 end) as named from requests"
        )
    except StepError as error:
        reason = str(error.__cause__).splitlines()[0]
        raise AssumptionError(f"[{lever}] {key} cannot be evaluated on this log ({reason}). In: {predicate}") from error


def tried(change: Change, bill: Bill, judged: Judged, assumed: Assumed, name: str) -> Tally:
    """Try a change on what was judged, apart from any set of levers, and count what it does.

    Args:
        change: The change.
        bill: The log's own bill.
        judged: The requests that it is about.
        assumed: The assumptions.
        name: Table to make.

    Returns:
        Counts by fate, feature and model.
    """
    counts = counts_in_use(bill.session)
    columns = (*VERSION_HEAD, *counts, *VERSION_TAIL, *judged.knobs)
    knobs = "".join(f", j.{knob}" for knob in judged.knobs)
    first = ", ".join(f"b.{column}" for column in (*VERSION_HEAD, *counts))
    bill.session.engine.step(
        f"{name}_given",
        f"select {first}, b.cost_pusd, cast(null as bigint) as set_pusd, true as is_kept, 1 as reach, 1 as touch, "
        f"0 as levers, 0 as combo, -1 as world{knobs} from lever_base as b join {judged.view} as j on b.rid = j.rid "
        "where j.fate = 'touched'",
    )
    changed(change, Bill(bill.session, f"{name}_given", columns), assumed, name, 1)
    return counted_alone(bill.session, judged.view, name, 1)


def counted_alone(session: Session, judged: str, versions: str, bit: int) -> Tally:
    """Count what a lever on its own did.

    Args:
        session: The priced session.
        judged: View of what it judged.
        versions: Its versions of the requests, pulled alone.
        bit: Its bit.

    Returns:
        Counts by fate, feature and model.
    """
    sql = steps.filled("lever_tally", judged=judged, versions=versions, bit=str(bit))
    return Tally(session.engine.fetch(f"{sql}\norder by all nulls last"), versions, bit)


def changed(lever: Change, bill: Bill, assumed: Assumed, name: str, bit: int, *, materialised: bool = True) -> int:
    """Try a lever's change on versions of requests, price it, and keep it where there is a price before and after.

    Args:
        lever: The lever.
        bill: The versions that it is given.
        assumed: Its assumptions.
        name: Table to make: the versions with the lever pulled.
        bit: The lever's bit in ``levers``.
        materialised: Keep the versions as a table; False where they are only summed.

    Returns:
        The lever's fixed charges, in pUSD.
    """
    session = bill.session
    after = lever.apply(bill, assumed)
    news = {*(column for column in lever.changed if column in bill.columns), "set_pusd"}
    made = {"cost_pusd", "is_kept", "levers"}
    kept = tuple(column for column in bill.columns if column not in news | made)
    absent = [column for column in schema.TOKEN_COLUMNS if column not in bill.columns]
    steps.run(
        session.engine,
        "lever_tried",
        name=f"{name}_tried",
        kept=listed(kept, "c", "  "),
        new=",\n  ".join(f"c.{'new_' * (column in lever.changed)}{column} as {column}" for column in sorted(news)),
        own=",\n  ".join(f"c.{column} as own_{column}" for column in sorted(news)),
        absent="".join(f",\n  cast(null as bigint) as {column}" for column in absent),
        changed=after.requests,
    )
    session.price(f"{name}_tried", f"{name}_priced", windowed=False)
    chosen = (f"case when is_changed then {column} else own_{column} end as {column}" for column in sorted(news))
    steps.run(
        session.engine,
        "lever_kept",
        name=name,
        materialised=materialised,
        priced=f"{name}_priced",
        kept=",\n  ".join(column for column in kept if column != "combo"),
        chosen=",\n  ".join(chosen),
        cost=cost("", session.meters),
        settled=after.settled,
        bit=str(bit),
    )
    return after.fixed_pusd - bill.fixed_pusd


def filled_columns(bill: Bill, columns: Iterable[str]) -> dict[str, int]:
    """Count the billed requests of the window in which columns hold something.

    Args:
        bill: The log's own bill.
        columns: Columns of ``requests``.

    Returns:
        Column to number of requests.
    """
    wanted = list(columns)
    unknown = {column for column in wanted if column not in bill.filled}
    found = {**bill.filled, **(_counted(bill.session, unknown) if unknown else {})}
    return {column: found[column] for column in wanted}


def _counted(session: Session, columns: Collection[str]) -> dict[str, int]:
    # lists are long to read, and come with the size of their blocks
    as_told = {"prefix_hashes": "prefix_block_tokens"}
    counts = (f"cast(count({as_told.get(one, one)}) as bigint) as {one}" for one in sorted(columns))
    sql = f"select {', '.join(counts)} from lever_log_priced_cells where is_billed"
    return {str(name): int(value) for name, value in session.engine.fetch(sql).row(0, named=True).items()}


def missing(lever: Lever, bill: Bill) -> str:
    """Say what a lever needs and the log does not have.

    Args:
        lever: The lever.
        bill: The log's own bill.

    Returns:
        One sentence naming the columns; empty where nothing is missing.
    """
    counts = filled_columns(bill, dict.fromkeys(column for group in lever.needs for column in group))
    lacking = [" and ".join(group) for group in lever.needs if not any(counts[column] for column in group)]
    return f"no billed request of this log has {', or '.join(lacking)}" if lacking else ""


def cost(alias: str, meters: Sequence[Meter]) -> str:
    """Write a priced request's cost as SQL: the sum of its meters, NULL where it has no price.

    Args:
        alias: Name of the priced view in the query; empty for the only one.
        meters: Meters in use.

    Returns:
        SQL text.
    """
    place = f"{alias}." if alias else ""
    return " + ".join(f"{place}{meter.name}_pusd" for meter in meters)


def listed(columns: Iterable[str], alias: str, indent: str = "    ") -> str:
    """Write an explicit column list.

    Args:
        columns: Column names.
        alias: Name of the view in the query.
        indent: Spaces before each but the first.

    Returns:
        SQL text.
    """
    return f",\n{indent}".join(f"{alias}.{column}" for column in columns)
