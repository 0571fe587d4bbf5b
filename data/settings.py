"""The small files beside the logs: the gateway's map, the assumptions and the SLO."""

from .company import BATCH_FEATURES, IN_AN_HOUR

GATEWAY_MAP = """\
# How to read gateway.csv, the log of Larkspur's own gateway.
convention = "exclusive"      # in_tok does not hold the cached tokens
zone = "Europe/Berlin"        # started is local time without an offset

[columns]                     # canonical column = source column
ts = "started"
request_id = "call_id"
duration_ms = "took_ms"
team = "squad"
feature = "use_case"
user_id = "person"
input_tokens = "in_tok"
cache_read_tokens = "cached"
output_tokens = "out_tok"

[constants]
provider = "google"
model = "gemini-2.5-flash"
"""


def assumptions(*, effort_days: float = 0.5) -> str:
    """Write what Larkspur is ready to assume: the jobs that may wait a day.

    Args:
        effort_days: What moving them is thought to take.

    Returns:
        The text of `assume.toml`.
    """
    names = ", ".join(f"'{feature}'" for feature in BATCH_FEATURES)
    return f"""\
# Jobs that nobody waits for; see slo.toml for the one that is due sooner.
[batch_api]
where = "feature in ({names})"
effort_days = {effort_days}
"""


BUDGETS = """\
owner,month,usd
agents,2026-07,360
agents,2026-08,400
agents,2026-09,440
finance,2026-07,120
finance,2026-08,140
finance,2026-09,160
growth,2026-07,70
growth,2026-08,70
growth,2026-09,70
platform,2026-07,110
platform,2026-08,110
platform,2026-09,110
search,2026-07,20
search,2026-08,20
search,2026-09,25
support,2026-07,30
support,2026-08,30
support,2026-09,30
"""
"""What each team was granted a month before the quarter began, in USD."""


def slo() -> str:
    """Write Larkspur's service levels.

    Returns:
        The text of `slo.toml`.
    """
    parts = ["# Limits for all traffic, then by feature.\nttft_p95_ms = 5000\ntpot_p95_ms = 60\n"]
    for feature in BATCH_FEATURES:
        deadline_s = 3_600 if feature == IN_AN_HOUR else 172_800
        parts.append(f'[feature."{feature}"]\nttft_p95_ms = inf\ndeadline_s = {deadline_s}\n')
    return "\n".join(parts)
