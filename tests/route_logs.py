"""Small logs and evals for tests of the route lever: four models, plain ratios."""

from datetime import datetime

from small_logs import ledger, look, row

import tenfold as tf
from tenfold.levers.route import LEVER

NOON = datetime(2026, 6, 1, 12)


UUSD = 10**6  # one millionth of a USD, in pUSD


# USD per million: `big` 2 in, 0.2 read, 2.5 written, 4 written long, 10 out; `small` 0.5, 0.05, no writes, 2; `tiny`
# has no cache prices at all, `long` writes for the default lifetime only. A batch is half of `big` and `small`.
PRICES = "\n".join(
    [
        'provider = "openai"',
        *(
            f'[[price]]\nmodel = "{model}"\n{rates}\nsource = "test"\nchecked = 2026-01-01'
            for model, rates in [
                ("big", "input = 2\ncache_read = 0.2\ncache_write = 2.5\ncache_write_long = 4\noutput = 10"),
                ("big", 'service_tier = "batch"\ninput = 1\ncache_read = 0.1\noutput = 5'),
                ("small", "input = 0.5\ncache_read = 0.05\noutput = 2"),
                ("small", 'service_tier = "batch"\ninput = 0.25\ncache_read = 0.025\noutput = 1'),
                ("tiny", "input = 0.5\noutput = 2"),
                ("long", "input = 0.5\ncache_read = 0.05\ncache_write = 0.6\noutput = 2"),
            ]
        ),
    ]
)


# 1,000 in and 100 out: 3,000 at big, 500 + 200 at small, so 2,300 saved
PLAIN = {"where": "feature = 'tagging'", "to_model": "small", "output_ratio": 1, "token_ratio": 1, "min_quality": 0.5}


def asked(number, **columns):
    return row(model="big", request_id=f"r{number}", **columns)


def found_in(rows, table, slo=None):
    return look(LEVER, ledger(rows, PRICES), {"route": {**PLAIN, **table}}, slo)


def planned(rows, table, slo=None, levers=(LEVER,), **others):
    return tf.plan(ledger(rows, PRICES), assume={"route": {**PLAIN, **table}, **others}, slo=slo, levers=levers)


def alone(rows, table, slo=None):
    (one,) = planned(rows, table, slo).estimates
    return one.alone_pusd
