-- Daily cost by team and model. Money is whole picodollars, and exact decimal USD beside it; never a float.
select
    day,
    team,
    provider,
    model,
    cast(sum(requests) as bigint) as requests,
    cast(sum(unpriced_requests) as bigint) as unpriced_requests,
    cast(sum(cost_pusd) as decimal(38, 0)) as cost_pusd,
    cast(cast(sum(cost_pusd) as decimal(25, 0)) * 0.000000000001 as decimal(38, 12)) as cost_usd,
    min(card_version) as card_version
from {{ ref('stg_costs') }}
group by day, team, provider, model
