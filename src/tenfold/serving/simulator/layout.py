"""What the compiled part of the simulator works on: one record a request and a replica, and plain numbers."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Records: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

# Gaps between tokens are counted in bins of 1 % from 10 us to some hours.
GAP_FROM_S = 1e-5
GAP_BIN = 0.01
GAP_BINS = 2200
# Points of the time series; where they do not suffice, each is made twice as long.
POINTS = 512

_Record_co = TypeVar("_Record_co", covariant=True)


class Rows(Protocol[_Record_co]):
    """An array of records, as compiled code sees it: an element's fields can be read and set."""

    @property
    def size(self) -> int:
        """How many."""
        ...

    def __getitem__(self, at: int, /) -> _Record_co:
        """Give the record at a place."""
        ...


class Grid(Protocol[_Record_co]):
    """The same in two dimensions."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many, along either."""
        ...

    def __getitem__(self, at: tuple[int, int], /) -> _Record_co:
        """Give the record at a place."""
        ...


class Request:
    """A request.

    Args:
        arrival_s: Its arrival; inf: not known yet (closed loop).
        ready_s: When its KV cache has arrived at the decode worker.
        admitted_s: When it was first scheduled, or given up; -1: not yet.
        first_s: Its first token; NaN: given up.
        last_s: Its last token so far; NaN: given up.
        gap_s: The longest time between two of its tokens.
        input: Tokens of the prompt.
        output: Tokens of the answer.
        generated: Tokens of the answer so far.
        computed: Tokens whose keys and values are in memory.
        furthest: The most tokens that ever were.
        take: Tokens in the step under way.
        chain: Where its prefix blocks start.
        chained: Whole prefix blocks in its prompt.
        held: Leading ones that it holds.
        private: Pages that it alone holds.
        cached: Tokens that another request had computed.
        recomputed: Tokens computed again after a preemption.
        preempted: Times that it was preempted.
        replica: Where it is or was last.
        met_running: Requests that its replica was computing when it arrived.
        met_waiting: Requests in its replica's queue then.
        met_pages: Pages that they held then.
        after: The next in the queue that it is in; -1: none.
        group: Histogram that its gaps go to.
        number: Its place among the requests asked for; another attempt has the same.
        attempt: 0 the first.
    """

    arrival_s: float
    ready_s: float
    admitted_s: float
    first_s: float
    last_s: float
    gap_s: float
    input: int
    output: int
    generated: int
    computed: int
    furthest: int
    take: int
    chain: int
    chained: int
    held: int
    private: int
    cached: int
    recomputed: int
    preempted: int
    replica: int
    met_running: int
    met_waiting: int
    met_pages: int
    after: int
    group: int
    number: int
    attempt: int


class Replica:
    """A replica.

    Args:
        ends_s: End of the step under way; inf: idle.
        speed: Its speed; 1 is as the roofline says.
        decode_speed: Speed of its decoding on top of that.
        busy_s: Seconds in steps.
        link_free_s: When it has sent what there is to send.
        used: Pages that requests hold.
        idle: Pages of prefixes that nobody holds.
        peak: The most that requests held.
        load: Requests waiting and running.
        count: Requests running.
        head: First of the queue; -1: none.
        tail: Last of the queue.
        sent_head: First of those whose KV cache is being sent; -1: none.
        sent_tail: Last of them.
    """

    ends_s: float
    speed: float
    decode_speed: float
    busy_s: float
    link_free_s: float
    used: int
    idle: int
    peak: int
    load: int
    count: int
    head: int
    tail: int
    sent_head: int
    sent_tail: int


class Tally:
    """Counts over all steps, and what is in the step being scheduled.

    Args:
        steps: Steps.
        prefilled: Tokens of prompts that were computed.
        decoded: Tokens that were decoded.
        preempted: Preemptions.
        dropped: Requests that left their queue unanswered.
        again: Attempts that followed from giving up.
        again_head: First of those that have yet to arrive; -1: none.
        again_tail: Last of them.
        turn: Requests that were routed in turn.
        decode_turn: Of those, to decode workers.
        point_s: Seconds a point of the time series.
        decodes: Sequences that get a token in this step.
        prompt: Tokens of prompts in it.
        kept: Tokens that its decodes read, by width.
        pairs: Pairs of a prompt's token and one before it.
        reread: Tokens that its prompts read again, by width.
    """

    steps: int
    prefilled: int
    decoded: int
    preempted: int
    dropped: int
    again: int
    again_head: int
    again_tail: int
    turn: int
    decode_turn: int
    point_s: float
    decodes: int
    prompt: int
    kept: float
    pairs: float
    reread: float


class Prefix:
    """A prefix block on a replica.

    Args:
        holders: Requests that hold it; 0: in memory for nobody, -1: not in memory.
        before: Neighbour among blocks that nobody holds, the one let go before it.
        after: The one let go after it.
    """

    holders: int
    before: int
    after: int


def dtype(record: type) -> np.dtype[np.void]:
    """Make the type of an array's elements.

    Args:
        record: One of the classes above.

    Returns:
        The same fields, 8 bytes each.
    """
    kinds = {"float": "f8", "int": "i8"}
    return np.dtype([(name, kinds[kind]) for name, kind in record.__annotations__.items()], align=True)


class Rules(NamedTuple):
    """How requests are scheduled.

    Args:
        budget: Tokens a step.
        max_seqs: Sequences under way on one replica.
        prefill_first: Whole prompts before decodes.
        capacity: Pages in a replica's pool.
        watermark: Pages kept free when a request is admitted.
        concurrency: Requests under way in a closed loop; 0: they arrive by themselves.
        patience_s: Seconds to the first token after which a client gives up.
        pause_s: Seconds after which it then asks again, if it does.
        asked: Requests asked for; further attempts at them follow, as many each.
        least_loaded: Route to the replica with the fewest requests, else in turn.
        prefill_workers: The first replicas only prefill; 0: all do both.
        transfer_token_s: Seconds to send one token of KV cache, by width.
        transfer_state_s: Seconds to send what does not grow with the tokens.
        transfer_latency_s: Seconds until a transfer has begun.
        chain_tokens: Tokens of a prefix block.
        chain_pages: Pages of a prefix block.
        state_pages: Pages that a sequence takes however long it is (linear layers).
        state_tokens: What it then is to read, in tokens by width.
        full_width: Width of the layers that look back to the start: how much they keep a token.
        windowed: The others by group: width, and how far they look back.
    """

    budget: int
    max_seqs: int
    prefill_first: bool
    capacity: int
    watermark: int
    concurrency: int
    patience_s: float
    pause_s: float
    asked: int
    least_loaded: bool
    prefill_workers: int
    transfer_token_s: float
    transfer_state_s: float
    transfer_latency_s: float
    chain_tokens: int
    chain_pages: int
    state_pages: int
    state_tokens: float
    full_width: int
    windowed: Ints


class Cost(NamedTuple):
    """What a step costs, in seconds (``roofline.StepCost``), with what its reading depends on.

    Args:
        weights_s: Reading all weights.
        kept_token_s: Reading one token of KV cache, by width.
        token_s: Multiplying a token.
        pair_s: Attention of a token to one before it.
        overhead_s: Any step.
        sequence_s: A decoded sequence.
        link_token_s: Exchanging a token's activations.
        expert_share: Share of the weights in routed experts.
        expert_miss: Probability that one token leaves an expert alone.
    """

    weights_s: float
    kept_token_s: float
    token_s: float
    pair_s: float
    overhead_s: float
    sequence_s: float
    link_token_s: float
    expert_share: float
    expert_miss: float


class State(NamedTuple):
    """Everything that changes.

    Args:
        requests: In order of arrival.
        replicas: The replicas.
        tally: One record.
        running: Requests under way by replica, in order of admission.
        chain: Prefix blocks of all requests, one after the other.
        prefixes: By replica and prefix block; the last column is both ends of the list of neighbours.
        gaps: Histograms of times between tokens, by group.
        points: Time series: running, waiting, pages used; -1: no step ended.
    """

    requests: Rows[Request]
    replicas: Rows[Replica]
    tally: Rows[Tally]
    running: Ints
    chain: Ints
    prefixes: Grid[Prefix]
    gaps: Ints
    points: Ints
