-- Days and models whose billed requests are not those that costs were made of: none.
with counted as (
    select day, team, provider, model, count(*) as requests
    from {{ ref('stg_requests') }}
    where is_billed
    group by all
)

select
    counted.day,
    counted.team,
    counted.model,
    counted.requests as published,
    daily_cost.requests as priced
from counted
full join {{ ref('daily_cost') }} as daily_cost
    on counted.day is not distinct from daily_cost.day
    and counted.team = daily_cost.team
    and counted.provider is not distinct from daily_cost.provider
    and counted.model is not distinct from daily_cost.model
where coalesce(counted.requests, 0) <> coalesce(daily_cost.requests, 0)
