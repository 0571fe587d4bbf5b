-- The share of requests that have a price, by day and model. Read it beside every total: what has no price costs nothing here.
select
    day,
    provider,
    model,
    cast(sum(requests) as bigint) as requests,
    cast(sum(unpriced_requests) as bigint) as unpriced_requests,
    1.0 - sum(unpriced_requests) / nullif(sum(requests), 0) as priced_ratio
from {{ ref('stg_costs') }}
group by day, provider, model
