"""What must be said of a fleet's bill: why there is none, what it covers, and what of it rests on assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from tenfold.display import counted, minute, number
from tenfold.errors import NotEvaluable, ServingError, near
from tenfold.ledger import Window
from tenfold.serving.allocation import Busy
from tenfold.serving.demand import ON_NO_POOL, Demand, Seen, Span
from tenfold.serving.fleet import PROVIDER, SCHEME, Fleet, Period, Pool, Stretch

if TYPE_CHECKING:
    from tenfold.serving.hosted import HostedLedger

_NAMED = 4
# A bill over more is a slip of the pen, or one time in the log that is wrong; each hour of it is looked at.
_LONGEST = timedelta(days=20 * 366)


def check(fleet: Fleet, seen: Seen, keys: Sequence[tuple[int, str, str, str, str]]) -> None:
    """Refuse a log that has nothing for a fleet to serve.

    Args:
        fleet: The fleet.
        seen: What the log says of it.
        keys: The log's price keys.

    Raises:
        NotEvaluable: No request is self-hosted, none that is has a time, or no pool runs a model of theirs.
    """
    if not seen.models:
        found = ", ".join(sorted({provider for _, provider, *_ in keys if provider})) or "none named"
        raise NotEvaluable(
            f'no request of provider "{PROVIDER}" in this log (providers: {found}), so no pool of {fleet.place} '
            f"matches any. Load the engine's log with --set provider={PROVIDER}"
        )
    if not seen.dated:
        raise NotEvaluable(
            f'{counted(seen.undated, "request")} of provider "{PROVIDER}" and none with a time, so nothing says when '
            "the fleet was busy: load the log with its times (column ts; a map file can name them: load --map)"
        )
    if all(number == ON_NO_POOL for number in seen.models.values()):
        pools = "; ".join(f'pool {n} is of "{one.model}".{near(one.model, seen.models)}' for n, one in _numbered(fleet))
        raise NotEvaluable(
            f"no pool of {fleet.place} matches any request: {pools} Self-hosted models of the log: "
            f"{_listed(seen.models)}. Write model as the log does, and in spec the name that the tables have"
        )


def strangers(fleet: Fleet, seen: Seen) -> list[str]:
    """Name pools whose model is in no request of the log, in any window.

    Args:
        fleet: The fleet.
        seen: What the log says of it.

    Returns:
        One warning a pool.
    """
    known = {number for number in seen.models.values() if number != ON_NO_POOL}
    models = list(dict.fromkeys(pool.model.lower() for pool in fleet.pools))
    others = [model for model, number in seen.models.items() if number == ON_NO_POOL]
    return [
        f'{fleet.place}, pool {n}: no request of the log is of model "{pool.model}", so all of it is idle.'
        + (near(pool.model, others) or near(pool.model, seen.models) or f" The log has {_listed(seen.models)}")
        for n, pool in _numbered(fleet)
        if models.index(pool.model.lower()) not in known
    ]


def period(window: Window, seen: Seen) -> Period:
    """Say what a fleet is billed for.

    Args:
        window: The ledger's window.
        seen: What the log covers.

    Returns:
        The window, closed by the log where it is open, and the part of it that the log covers.

    Raises:
        NotEvaluable: The window is open and the log has nothing in it.
    """
    assert seen.covered is not None
    first, last = seen.covered
    since, until = window.since or first, window.until or last
    if since >= until:
        raise NotEvaluable(
            f"the log covers {minute(first, window.zone)} to {minute(last, window.zone)}: nothing of this window"
        )
    covered = (max(since, first), min(until, last))
    return Period(since, until, covered if covered[0] < covered[1] else None)


def check_length(fleet: Fleet, stretches: Sequence[Stretch], period: Period, seen: Seen, zone: str) -> None:
    """Refuse a bill over more time than any GPU runs.

    Args:
        fleet: The fleet.
        stretches: Times that are billed.
        period: The window, and what the log covers of it.
        seen: What the log says of the fleet.
        zone: Zone of the times in the error.

    Raises:
        ServingError: One is longer than twenty years; names it, and the request to look at where one alone makes it so.
    """
    for one in stretches:
        if one.until - one.since > _LONGEST:
            late, since, until = _late(seen, period.covered, zone), minute(one.since, zone), minute(one.until, zone)
            raise ServingError(
                f'{fleet.place}, model "{one.model}": a bill from {since} to {until}, '
                f"more than 20 years{late and f'; {late}'}. Set --from and --to (since, until), or from and to of the "
                "pool, to when it ran; where the log's times are wrong, load it with the right ones"
            )


def assumed(pools: Sequence[Pool]) -> list[str]:
    """Say what pools leave to be assumed.

    Args:
        pools: The pools.

    Returns:
        Notes.
    """
    silent = [key for key in ("weights", "kv") if any(getattr(pool, key) is None for pool in pools)]
    return [f"{' and '.join(silent)} taken to be {SCHEME}: the pool does not say"] if silent else []


def said(label: str, busy: Busy, most: float, demand: Demand, pools: Sequence[Pool]) -> list[str]:
    """Say what a model's rates rest on.

    Args:
        label: Whether its busy share is measured or modelled.
        busy: How busy its replicas were.
        most: The most requests that one decodes at once.
        demand: What was asked of it.
        pools: Its pools.

    Returns:
        Notes.
    """
    found: list[str] = []
    if label == "modelled":
        timed = f"only {demand.timed_requests:,} of" if demand.timed_requests else "none of"
        found.append(
            f"busy share modelled from arrivals: {timed} {counted(demand.requests, 'request')} have a duration"
        )
    elif demand.timed_requests < demand.requests:
        found.append(f"busy share measured on {demand.timed_requests:,} of {counted(demand.requests, 'request')}")
    if busy.over_hours:
        hours = counted(busy.over_hours, "hour")
        found.append(
            f"in {hours} more arrives than the fleet can decode, {number(busy.worst, 2)} times as much at worst"
        )
    if busy.batch > most:
        found.append(
            f"{number(busy.batch, 1)} requests under way in a replica, of which {number(most, 1)} fit: the rest waits, "
            f"and a token's GPU time is taken at {number(most, 1)}"
        )
    if len({(pool.gpu, pool.tp, pool.weights, pool.kv) for pool in pools}) > 1:
        found.append("its pools differ, and no column says which served a request: rates are their mean by cost")
    return found


def notes(ledger: HostedLedger, seen: Seen, others: Mapping[str, int], unpriced: int) -> tuple[str, ...]:
    """Say what the bill covers, what traffic has no pool, and which models have no traffic.

    Args:
        ledger: The ledger on its fleet.
        seen: What the log says of the fleet.
        others: Models of the window that no pool runs, to requests.
        unpriced: Requests of the fleet's own models without a price.

    Returns:
        Notes.
    """
    found = _covered(ledger)
    found += [
        f"{counted(calls, 'request')} of {model or 'no model'}: no pool of the fleet runs it, so they have no price"
        for model, calls in others.items()
    ]
    if unpriced:
        found.append(
            f"{counted(unpriced, 'request')} of the fleet's models without a price (coverage says which): usage "
            "missing, or no pool at that time"
        )
    if seen.undated:
        found.append(f"{counted(seen.undated, 'self-hosted request')} without a time: on no pool, so without a price")
    found += _doubtful(ledger, seen)
    asked = {one.model for one in ledger.hosted if one.demand.requests}
    known = {model.lower() for model in seen.models}
    idle = dict.fromkeys(one.model for one in ledger.hosted if one.model not in asked and one.model.lower() in known)
    found += [f"{model}: no request in this window, so its pools are all idle" for model in idle]
    return (*found, *_idle(ledger, seen))


def _covered(ledger: HostedLedger) -> list[str]:
    """Say where the log is shorter than the window, and where pools therefore have no bill."""
    asked, zone = ledger.period, ledger.window.zone
    running = [pool for pool in ledger.fleet.pools if pool.within(asked.since, asked.until)]
    is_open = any(pool.since is None or pool.until is None for pool in running)
    if asked.covered is None:
        return ["the log covers nothing of this window: only pools with from and to have a bill"] if is_open else []
    since, until = asked.covered
    hour = timedelta(hours=1)
    found: list[str] = []
    if is_open and (since - asked.since > hour or asked.until - until > hour):
        found.append(
            f"the log covers {minute(since, zone)} to {minute(until, zone)} of this window: a pool is billed for that, "
            "and for more only where its from and to say that it ran"
        )
    found += [
        f"{pool.name}: no bill, since it does not run while the log does; write both from and to if it ran"
        for pool in running
        if not pool.billed(asked)
    ]
    return found


def _doubtful(ledger: HostedLedger, seen: Seen) -> list[str]:
    """Name requests by whose duration the bill may be wrong."""
    found: list[str] = []
    late = _late(seen, ledger.period.covered, ledger.window.zone)
    if late and any(pool.until is None and pool.billed(ledger.period) for pool in ledger.fleet.pools):
        found.append(
            f"{late}: pools without to are billed until then. If its duration is wrong, give pools a to, or set --to"
        )
    if seen.odd:
        found.append(
            f"{counted(seen.odd, 'request')} with a duration that no call takes (30 years and more, or no number), "
            f"taken for unknown; the first is {seen.first_odd}"
        )
    return found


def _late(seen: Seen, covered: Span | None, zone: str) -> str:
    """Say which request alone lets a log end long after its last start; empty where none does."""
    if covered is None or seen.last_start is None or covered[1] - seen.last_start <= timedelta(hours=1):
        return ""
    hours = (covered[1] - seen.last_start) / timedelta(hours=1)
    return (
        f"the log's last request starts at {minute(seen.last_start, zone)}, and {seen.latest} is said to be under way "
        f"{number(hours, 1)} hours longer, to {minute(covered[1], zone)}"
    )


def _idle(ledger: HostedLedger, seen: Seen) -> list[str]:
    """Say where the bill is longer than self-hosted traffic, which makes GPUs look idle that may not have been."""
    if seen.hosted is None or not ledger.hosted:
        return []
    (first, last), (since, until), zone = seen.hosted, ledger.span, ledger.window.zone
    day = timedelta(days=1)
    found: list[str] = []
    if first - since > day:
        found.append(f"no self-hosted request before {minute(first, zone)}: GPUs are idle until then")
    if until - last > day:
        found.append(f"no self-hosted request after {minute(last, zone)}: GPUs are idle from then on")
    return found


def _numbered(fleet: Fleet) -> enumerate[Pool]:
    return enumerate(fleet.pools, 1)


def _listed(models: Mapping[str, int]) -> str:
    named = [model or "(no model)" for model in models]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more
