-- What a request, a successful request and a million tokens cost, by day and team; of priced traffic and all of it alike.
with costs as (
    select day, team, sum(requests) as requests, sum(unpriced_requests) as unpriced_requests, sum(cost_pusd) as cost_pusd
    from {{ ref('stg_costs') }}
    group by day, team
),

traffic as (
    select
        day,
        team,
        count(*) filter (status = 'success') as successes,
        sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) as tokens
    from {{ ref('stg_requests') }}
    where is_billed
    group by day, team
)

select
    costs.day,
    costs.team,
    costs.requests,
    traffic.successes,
    traffic.tokens,
    costs.cost_pusd,
    costs.cost_pusd / 1e12 / nullif(costs.requests - costs.unpriced_requests, 0) as usd_per_priced_request,
    costs.cost_pusd / 1e12 / nullif(traffic.successes, 0) as usd_per_success,
    costs.cost_pusd / 1e6 / nullif(traffic.tokens, 0) as usd_per_million_tokens
from costs
left join traffic on costs.day is not distinct from traffic.day and costs.team = traffic.team
