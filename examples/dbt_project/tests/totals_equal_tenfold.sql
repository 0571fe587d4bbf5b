-- Days whose sum is not the bill that tenfold itself gave for them, of the same log and card: none.
select
    bills.date as day,
    bills.day.total_pusd as billed_pusd,
    sum(daily_cost.cost_pusd) as summed_pusd
from {{ source('tenfold', 'bills') }} as bills
left join {{ ref('daily_cost') }} as daily_cost on daily_cost.day = cast(bills.date as date)
where exists (
    select 1
    from {{ ref('stg_costs') }} as stg_costs
    where stg_costs.log_hash = bills.log_hash and stg_costs.card_version = bills.card_version
)
group by all
having billed_pusd is distinct from summed_pusd
