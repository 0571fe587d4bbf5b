"""Traffic for incidents: sessions of several turns by six teams, on four features, through three clients.

A prompt is the team's system prompt of the feature, then the session so far, then what is new, so that a prefix cache
finds in it what it would find in real traffic. Blocks of equal content have equal numbers.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

BLOCK = 64
NEVER = 1 << 40
LONGEST = 20_000
"""Tokens of a prompt at which a session ends."""


class Team(NamedTuple):
    """A tenant: its share of the requests, how long its texts are against others', and shares of its features."""

    name: str
    share: float
    input_scale: float
    output_scale: float
    features: tuple[float, float, float, float]


class Feature(NamedTuple):
    """A route: system prompt, new text a turn and answer (median and sigma of lognormals), turns, pause, clients."""

    name: str
    system: int
    new: tuple[float, float]
    answer: tuple[float, float]
    turns: float
    pause_s: float
    clients: tuple[float, float, float]
    is_structured: bool = False


TEAMS = (
    Team("atlas", 0.33, 1.0, 1.0, (0.50, 0.20, 0.18, 0.12)),
    Team("borealis", 0.22, 0.8, 0.9, (0.10, 0.45, 0.25, 0.20)),
    Team("cygnus", 0.18, 1.1, 0.8, (0.15, 0.25, 0.40, 0.20)),
    Team("dorado", 0.14, 0.9, 1.1, (0.30, 0.40, 0.15, 0.15)),
    Team("eridanus", 0.11, 0.7, 0.7, (0.10, 0.40, 0.20, 0.30)),
    Team("fornax", 0.02, 2.0, 2.2, (0.40, 0.20, 0.30, 0.10)),
)
CLIENTS = ("codepilot/2.4.1", "web/5.12.0", "sdk-py/1.9.3")
FEATURES = (
    Feature("agent", 2560, (550, 0.8), (240, 0.7), 7, 14, (0.85, 0.0, 0.15)),
    Feature("chat", 1024, (160, 0.9), (420, 0.7), 4, 40, (0.0, 0.9, 0.1)),
    Feature("search", 768, (1800, 0.5), (330, 0.5), 2, 45, (0.0, 0.55, 0.45)),
    Feature("extract", 1280, (1000, 0.7), (100, 0.7), 1, 0, (0.05, 0.05, 0.9), is_structured=True),
)
TEAM_NAMES, FEATURE_NAMES = tuple(one.name for one in TEAMS), tuple(one.name for one in FEATURES)


class Requests(NamedTuple):
    """Requests in order of arrival, a place a request.

    Args:
        at_s: Arrival, in seconds from the start of the window; before it: to warm the caches up.
        number: Its prompt; an attempt more has the same.
        attempt: 0 the first.
        session: Session.
        turn: Turn of the session, 0 the first.
        team: Place in ``TEAMS``.
        feature: Place in ``FEATURES``.
        client: Place in ``CLIENTS``.
        input: Tokens of the prompt.
        output: Tokens of the answer.
        system: Blocks of the system prompt.
        first: Number of the first of them.
        own: Number of the session's first block.
        broken: Block from which on its content is its own alone.
        fresh: Number of the first block that is.
        draw: Uniform number, for what happens to some requests.
    """

    at_s: Floats
    number: Ints
    attempt: Ints
    session: Ints
    turn: Ints
    team: Ints
    feature: Ints
    client: Ints
    input: Ints
    output: Ints
    system: Ints
    first: Ints
    own: Ints
    broken: Ints
    fresh: Ints
    draw: Floats

    def take(self, places: Ints | Flags) -> Requests:
        """Give some of them.

        Args:
            places: Places, or a flag a request.

        Returns:
            Those.
        """
        return Requests._make(column[places] for column in self)

    def chains(self) -> tuple[Ints, Ints]:
        """Give the whole blocks of each prompt: how many, and their numbers one after the other."""
        count = self.input // BLOCK
        start = np.cumsum(count) - count
        place = np.arange(int(count.sum())) - np.repeat(start, count)
        system, first, own, broken, fresh = (
            np.repeat(column, count) for column in (self.system, self.first, self.own, self.broken, self.fresh)
        )
        kept = np.where(place < system, first + place, own + place - system)
        return count, np.where(place < broken, kept, fresh + place - broken)


class Pattern(NamedTuple):
    """What traffic is drawn from.

    Args:
        per_s: Requests a second, on average.
        shares: Shares of the teams; None: as usual.
        output_factor: By feature: answers as many times as long.
        input_factor: By feature: new text as many times as long.
        broken: Client, turns and block from which on its prompts are new content each time.
        broken_every: Of the turns of a broken prompt, one in so many is broken.
        broken_turns: Turns of a session that share such content all the same.
        huge: Tokens of a prompt that comes now and then, and seconds between two; 0: none.
        ramp: How much the rate grows over the time: from 1 - this to 1 + this, times the mean.
    """

    per_s: float
    shares: tuple[float, ...] | None = None
    output_factor: tuple[float, ...] = (1, 1, 1, 1)
    input_factor: tuple[float, ...] = (1, 1, 1, 1)
    broken: tuple[int, int] | None = None
    broken_every: int = 1
    broken_turns: int = 1
    huge: tuple[int, float] = (0, 0.0)
    ramp: float = 0.0


def draw(rng: np.random.Generator, pattern: Pattern, warm_up_s: float, span_s: float) -> Requests:
    """Draw the requests of a window and of the time before it.

    Sessions come as a Poisson process whose rate swings by a tenth around its mean, three times in a window.

    Args:
        rng: Random numbers; equal ones give the same requests whatever the knobs of the pattern.
        pattern: What to draw from.
        warm_up_s: Seconds before the window.
        span_s: Seconds of the window.

    Returns:
        The requests.
    """
    session, start_s, team, feature = _sessions(rng, pattern, warm_up_s, span_s)
    routes = [np.array([getattr(one, name) for one in FEATURES]) for name in ("turns", "pause_s", "system")]
    mean_turns, pause_s, system = (column[feature] for column in routes)
    shares = np.cumsum([one.clients for one in FEATURES], axis=1)[feature]
    client = (rng.random(session.size)[:, None] > shares).sum(axis=1)
    turns = np.minimum(rng.geometric(1 / mean_turns), 60)
    whose = np.repeat(session, turns)
    ends = np.cumsum(turns)
    turn = np.arange(whose.size) - np.repeat(ends - turns, turns)
    route, team, client = feature[whose], team[whose], client[whose]
    scales = np.array([(one.input_scale, one.output_scale) for one in TEAMS])[team]
    new = _lengths(rng, "new", route, scales[:, 0], np.array(pattern.input_factor))
    plain = _lengths(rng, "answer", route, scales[:, 1], np.ones(4))
    answer = np.maximum(1, np.rint(plain * np.array(pattern.output_factor)[route])).astype(np.int64)
    # what a person reads or a tool does takes its time from the answer on; answers come at some 60 tokens a second
    gap_s = pause_s[whose] * rng.lognormal(-0.18, 0.6, whose.size) + plain / 60
    before = _cumulated(gap_s, turn)
    said = _cumulated((new + plain).astype(np.float64), turn).astype(np.int64)
    prompt = system[whose] + said + new
    combination = team * len(FEATURES) + route
    # each session's blocks follow those of the one before; the longest prompt of a session is its last
    blocks = np.zeros(session.size, np.int64)
    np.maximum.at(blocks, whose, prompt // BLOCK)
    base = len(TEAMS) * len(FEATURES) * BLOCK
    own = base + np.cumsum(blocks) - blocks
    made = Requests(
        at_s=start_s[whose] + before, number=np.arange(whose.size), attempt=np.zeros(whose.size, np.int64),
        session=whose, turn=turn, team=team, feature=route, client=client, input=prompt, output=answer,
        system=system[whose] // BLOCK, first=combination * BLOCK, own=own[whose],
        broken=np.full(whose.size, NEVER), fresh=np.zeros(whose.size, np.int64), draw=rng.random(whose.size),
    )  # fmt: skip
    made = made.take((made.at_s >= -warm_up_s) & (made.at_s < span_s) & (prompt <= LONGEST))
    if pattern.huge[0]:
        made = _with_huge(made, pattern, warm_up_s, span_s, base + int(blocks.sum()))
    if pattern.broken is not None:
        made = _broken(made, *pattern.broken, pattern.broken_every, pattern.broken_turns)
    return made.take(np.argsort(made.at_s, kind="stable"))


def _sessions(
    rng: np.random.Generator, pattern: Pattern, warm_up_s: float, span_s: float
) -> tuple[Ints, Floats, Ints, Ints]:
    """Number sessions, with their starts, teams and features. They start long before, so that all turns occur."""
    shares = np.array(pattern.shares or [one.share for one in TEAMS])
    # a share of requests, and a session has several
    weights = np.array([one.features for one in TEAMS]) * shares[:, None] / np.array([one.turns for one in FEATURES])
    sessions_per_s = pattern.per_s * float(weights.sum()) / float(shares.sum())
    longest_s = 900.0
    since_s = -warm_up_s - longest_s
    length_s = span_s - since_s
    count = int(rng.poisson(sessions_per_s * length_s))
    even = np.sort(rng.random(count))
    if pattern.ramp:
        flat = 1 - pattern.ramp
        even = (np.sqrt(flat * flat + 4 * pattern.ramp * even) - flat) / (2 * pattern.ramp)
    even_s = even * length_s + since_s
    swing, phase = 2 * np.pi * 3 / span_s, rng.random() * 2 * np.pi
    # a start is moved to where the swinging rate has the same integral
    start_s = even_s + 0.1 / swing * np.cos(swing * even_s + phase)
    chosen = rng.choice(weights.size, count, p=(weights / weights.sum()).ravel())
    return np.arange(count), start_s, chosen // len(FEATURES), chosen % len(FEATURES)


def _lengths(rng: np.random.Generator, what: str, route: Ints, scale: Floats, factors: Floats) -> Ints:
    medians, sigmas = np.array([getattr(one, what) for one in FEATURES]).T
    drawn = medians[route] * scale * factors[route] * rng.lognormal(0.0, 1.0, route.size) ** sigmas[route]
    return np.clip(np.rint(drawn), 4, 12_000).astype(np.int64)


def _cumulated(values: Floats, turn: Ints) -> Floats:
    """Sum over earlier turns of the same session."""
    total = np.cumsum(values) - values
    return total - np.repeat(total[turn == 0], np.diff(np.append(np.flatnonzero(turn == 0), turn.size)))


def _with_huge(made: Requests, pattern: Pattern, warm_up_s: float, span_s: float, fresh: int) -> Requests:
    """Add the huge prompts: each a session of its own, of the first team's agent."""
    tokens, every_s = pattern.huge
    at_s = np.arange(every_s / 2 - warm_up_s // every_s * every_s, span_s, every_s)
    ordinal = np.arange(at_s.size)
    none = np.zeros(at_s.size, np.int64)
    some = made.take(none)._replace(
        at_s=at_s,
        number=int(made.number.max()) + 1 + ordinal,
        session=int(made.session.max()) + 1 + ordinal,
        turn=none,
        team=none,
        feature=none,
        client=none,
        input=none + tokens,
        output=none + 200,
        system=none + FEATURES[0].system // BLOCK,
        first=none,
        own=fresh + ordinal * (tokens // BLOCK),
    )
    return Requests._make(np.concatenate(pair) for pair in zip(made, some, strict=True))


def _broken(made: Requests, client: int, block: int, every: int, turns: int) -> Requests:
    """Break the prompts of a client at a block: what follows is content that only its next few turns have too."""
    hit = (made.client == client) & (made.turn % every == every - 1)
    _, group = np.unique(made.session * 64 + made.turn // turns, return_inverse=True)
    blocks = np.zeros(int(group.max()) + 1, np.int64)
    np.maximum.at(blocks, group, np.where(hit, made.input // BLOCK, 0))
    past = int(made.own.max()) + int(made.input.max()) // BLOCK
    return made._replace(broken=np.where(hit, block, NEVER), fresh=(past + np.cumsum(blocks) - blocks)[group])
