"""What the readers of OpenRouter have in common: who bills, what was charged, which host answered.

Only the native counts are billed. With a key of one's own (BYOK) the tokens are on the upstream provider's bill and
OpenRouter takes a fee: the row then belongs to the upstream provider, is flagged ``byok``, and its logged cost is both.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.prices.words import PROVIDER_ALIASES

# Hosts by the names that OpenRouter shows.
_HOSTS = {
    **PROVIDER_ALIASES,
    "google": "vertex",
    "google vertex": "vertex",
    "google ai studio": "google",
    "amazon bedrock": "bedrock",
    "moonshot ai": "moonshot",
    "z.ai": "zai",
}


def provider(host: str, byok: str) -> str:
    """Say who bills the tokens.

    Args:
        host: SQL text of the host's name.
        byok: SQL text of whether the key is one's own with the host.

    Returns:
        SQL text.
    """
    named = " ".join(f"WHEN '{word}' THEN '{mine}'" for word, mine in _HOSTS.items())
    word = f"lower(trim({host}))"
    return f"CASE WHEN {byok} = 'true' THEN CASE {word} {named} ELSE {word} END ELSE 'openrouter' END"


def cost(own: str, upstream: str, byok: str) -> str:
    """Give what was charged: with a key of one's own, the fee and the upstream provider's charge.

    Args:
        own: SQL of OpenRouter's charge.
        upstream: SQL of the host's.
        byok: SQL text of whether the key is one's own with the host.

    Returns:
        SQL text.
    """
    fee, paid = (f"TRY_CAST({sql.text(value)} AS DECIMAL(38,12))" for value in (own, upstream))
    return f"CASE WHEN {byok} = 'true' THEN ({fee} + coalesce({paid}, 0))::VARCHAR ELSE {sql.text(own)} END"


def tags(host: str) -> str:
    """Keep which host answered.

    Args:
        host: SQL text of its name.

    Returns:
        SQL text of a map.
    """
    return f"nullif(json_merge_patch('{{}}', json_object('host', {host}))::VARCHAR, '{{}}')"
