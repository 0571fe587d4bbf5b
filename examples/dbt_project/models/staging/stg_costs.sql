-- One row a day and owner: requests that are billed, those of them without a price, and what the others cost.
select
    day,
    coalesce(team, 'unallocated') as team,
    coalesce(feature, 'unallocated') as feature,
    provider,
    model,
    coalesce(service_tier, 'standard') as service_tier,
    requests,
    unpriced_requests,
    cast(cost_pusd as decimal(38, 0)) as cost_pusd,
    card_version,
    log_hash
from {{ source('tenfold', 'costs') }}
