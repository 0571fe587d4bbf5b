"""A fleet of one's own: pools of GPUs with their price by the hour, read from ``fleet.toml``, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field

from tenfold.errors import PriceFileError, ServingError
from tenfold.money import divided, rate_pusd, shown
from tenfold.prices.models import Instant, Strict, as_decimal, parse_as
from tenfold.serving import memory
from tenfold.serving.memory import MOST_TP, Deployment

PROVIDER = "self-hosted"
Commitment = Literal["on_demand", "reserved_1y", "reserved_3y", "spot", "contract", "owned"]
COMMITMENTS: tuple[str, ...] = get_args(Commitment)
# What weights and KV cache are taken to be kept in where a pool does not say.
SCHEME = "bf16"
MOST_REPLICAS = 1_000_000  # more is a slip of the pen
_HOUR_US = 3_600_000_000


class Period(NamedTuple):
    """What a fleet is billed for: a window, and the part of it that a log covers.

    Args:
        since: Start of the window; of the log, where the window is open.
        until: Its end, exclusive, likewise.
        covered: From the log's first start to its last end within the window; None where they do not meet.
    """

    since: datetime
    until: datetime
    covered: tuple[datetime, datetime] | None


@dataclass(frozen=True, slots=True)
class Pool:
    """Replicas of one model on GPUs of one kind, for a time.

    Args:
        model: The model, as the log calls it.
        gpu: GPU, as in ``pricing/gpus.toml``.
        replicas: Copies of the model.
        usd_per_hour: Price of one GPU for one hour, in USD.
        tp: GPUs that share one copy.
        commitment: How the GPUs are paid for.
        since: First instant it runs (aware), or None.
        until: Instant it ends (aware, exclusive), or None.
        spec: The model's name in ``pricing/models.toml``, where the log calls it otherwise.
        weights: Numbers of the weights; None is taken for bf16.
        kv: Numbers of the KV cache; None is taken for bf16.
        max_batch: Most sequences that one replica decodes at once; None where it is not set.
    """

    model: str
    gpu: str
    replicas: int
    usd_per_hour: Decimal
    tp: int = 1
    commitment: Commitment = "on_demand"
    since: datetime | None = None
    until: datetime | None = None
    spec: str | None = None
    weights: str | None = None
    kv: str | None = None
    max_batch: int | None = None

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.tp * self.replicas

    @property
    def pusd_per_hour(self) -> int:
        """Price of one GPU for one hour, in pUSD."""
        return rate_pusd(self.usd_per_hour, 1)

    @property
    def deployment(self) -> Deployment:
        """One replica of it.

        Raises:
            ServingError: Model, GPU or number scheme is not known.
        """
        return memory.deployment(self.spec or self.model, self.gpu, self.tp, self.weights or SCHEME, self.kv or SCHEME)

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return f"{self.model} on {self.replicas} x {self.tp} {self.gpu}, {self.commitment.replace('_', ' ')}"

    def within(self, since: datetime, until: datetime) -> tuple[datetime, datetime] | None:
        """Cut a span to when the pool runs.

        Args:
            since: Start of the span.
            until: Its end, exclusive.

        Returns:
            Start and end, or None where it does not run in the span.
        """
        start, end = max(since, self.since or since), min(until, self.until or until)
        return (start, end) if start < end else None

    def billed(self, period: Period) -> tuple[datetime, datetime] | None:
        """Say when it costs money in a period: over what the log covers, and where ``from`` or ``to`` say more.

        Args:
            period: The window, and what the log covers of it.

        Returns:
            Start and end within the window; None where it does not run in it, or nothing says that it did.
        """
        covered = period.covered or (None, None)
        since = max(self.since, period.since) if self.since else covered[0]
        until = min(self.until, period.until) if self.until else covered[1]
        return (since, until) if since and until and since < until else None

    def bill_pusd(self, since: datetime, until: datetime) -> int:
        """Price a span: GPUs x price x hours in which the pool runs, half-even to 1 pUSD (a time-based meter).

        Args:
            since: Start of the span.
            until: Its end, exclusive.

        Returns:
            pUSD.
        """
        span = self.within(since, until)
        return 0 if span is None else divided(self.gpus * self.pusd_per_hour * micros(*span), _HOUR_US)

    def sum_text(self, since: datetime, until: datetime) -> str:
        """Write how its bill is made up.

        Args:
            since: Start of the span.
            until: Its end, exclusive.

        Returns:
            Text such as ``8 GPUs x $2.95/h x 730 h``.
        """
        span = self.within(since, until)
        hours = 0 if span is None else micros(*span) / _HOUR_US
        gpus = f"{self.gpus} GPU{'' if self.gpus == 1 else 's'}"
        return f"{gpus} x {shown(self.pusd_per_hour)}/h x {hours:,.4g} h"


class Stretch(NamedTuple):
    """A time in which a model's pools stay the same.

    Args:
        model: The model, in lower case.
        since: Its start.
        until: Its end, exclusive.
        pools: Those that run throughout it.
    """

    model: str
    since: datetime
    until: datetime
    pools: tuple[Pool, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """All pools.

    Args:
        pools: The pools.
        place: Where they are written, for errors.
        version: Hash of what was read.
    """

    pools: tuple[Pool, ...]
    place: str = "fleet"
    version: str = field(default="", compare=False)

    @classmethod
    def load(cls, path: str | Path) -> Fleet:
        """Read a fleet file.

        Args:
            path: The file (``fleet.toml``): ``[[pool]]`` tables with ``model, gpu, tp, replicas, usd_per_hour``
                (of one GPU), ``commitment, from, to``, and where needed ``spec, weights, kv, max_batch``.

        Returns:
            The fleet.

        Raises:
            ServingError: The file is missing or cannot be used; names file, pool, key and the near match.
        """
        file = Path(path)
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ServingError(f"{path}: cannot be read: {error.strerror}") from error
        try:
            tables = parse_as(str(path), content, _File, {"pool": _Table}).pool
        except PriceFileError as error:
            raise ServingError(str(error)) from None
        if not tables:
            raise ServingError(f"{path}: no [[pool]] table, so there is nothing to price")
        made = cls(tuple(table.pool() for table in tables), str(path), sha256(content).hexdigest()[:12])
        made.check()
        return made

    def check(self) -> None:
        """Refuse pools that cannot be used.

        Raises:
            ServingError: A model, GPU or scheme is not known, a pool ends before it begins, or a price is no price.
        """
        for number, pool in enumerate(self.pools, 1):
            where = f'{self.place}, pool {number} (model "{pool.model}")'
            if pool.since and pool.until and pool.until <= pool.since:
                raise ServingError(f"{where}: to must be after from")
            try:
                fits = pool.deployment.fits
                _ = pool.pusd_per_hour
            except (ServingError, ValueError) as error:
                is_model = str(error).startswith("model ") and not pool.spec
                hint = "; where the log has another name for a model that is there, write that in spec" * is_model
                raise ServingError(f"{where}: {error}{hint}") from error
            if not fits:
                raise ServingError(
                    f"{where}: its weights do not fit on {pool.tp} {pool.gpu} in {pool.weights or SCHEME}; "
                    "set tp or weights as they run"
                )

    def stretches(self, period: Period) -> list[Stretch]:
        """Cut a period, model by model, where the set of pools changes.

        Args:
            period: The window, and what the log covers of it.

        Returns:
            Stretches with at least one pool, by model and time.
        """
        found: list[Stretch] = []
        for model in dict.fromkeys(pool.model.lower() for pool in self.pools):
            running = [pool for pool in self.pools if pool.model.lower() == model]
            spans = [(pool, span) for pool in running if (span := pool.billed(period))]
            cuts = sorted({instant for _, span in spans for instant in span})
            for start, end in pairwise(cuts):
                pools = tuple(pool for pool, span in spans if span[0] <= start and end <= span[1])
                if pools:
                    found.append(Stretch(model, start, end, pools))
        return found


def micros(since: datetime, until: datetime) -> int:
    """Count the microseconds between two instants."""
    return (until - since) // timedelta(microseconds=1)


def _price(value: object) -> object:
    number = as_decimal(value)
    if isinstance(number, str) or (isinstance(number, Decimal) and number < 0):
        raise ValueError("must be USD for one GPU and hour, at least 0")
    return number


class _Table(Strict):
    """One ``[[pool]]`` table as written."""

    model: str = Field(min_length=1)
    gpu: str = Field(min_length=1)
    tp: int = Field(default=1, ge=1, le=MOST_TP)
    replicas: int = Field(default=1, ge=1, le=MOST_REPLICAS)
    usd_per_hour: Annotated[Decimal, BeforeValidator(_price)]
    commitment: Commitment = "on_demand"
    since: Instant | None = Field(default=None, alias="from")
    until: Instant | None = Field(default=None, alias="to")
    spec: str | None = Field(default=None, min_length=1)
    weights: str | None = None
    kv: str | None = None
    max_batch: int | None = Field(default=None, ge=1)

    def pool(self) -> Pool:
        return Pool(**dict(self))


class _File(Strict):
    pool: list[_Table] = Field(default=[])
