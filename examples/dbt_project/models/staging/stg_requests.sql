-- One row a request: its day (UTC; none where the log gives no time), its owner, its tokens, and whether it is billed.
-- A gateway's cache hit and a call that nobody pays are not; unknown counts as billed, as in tenfold.
select
    rid,
    try_cast(day as date) as day,
    ts,
    coalesce(team, 'unallocated') as team,
    coalesce(feature, 'unallocated') as feature,
    provider,
    model,
    coalesce(service_tier, 'standard') as service_tier,
    status,
    input_tokens,
    cache_read_tokens,
    output_tokens,
    coalesce(is_billable, true) and not coalesce(gateway_cache_hit, false) as is_billed
from {{ source('tenfold', 'requests') }}
