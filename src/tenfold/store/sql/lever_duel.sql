-- Two levers that want the same requests: what each would save of them alone, by feature.
-- in:  the first version of the requests, and which of them both want; both levers' versions, each pulled alone
-- out: one row a feature: what the requests cost now, with the first, with the second
-- units: pUSD
with both_of as (
  select rid, feature, cost_pusd
  from {rows}
  where {contested}
),
first_of as (
  select v.rid, sum(cast(v.cost_pusd as decimal(38, 0))) as pusd
  from {first} as v
  group by v.rid
),
second_of as (
  select v.rid, sum(cast(v.cost_pusd as decimal(38, 0))) as pusd
  from {second} as v
  group by v.rid
)
select
  both_of.feature,
  coalesce(sum(cast(both_of.cost_pusd as decimal(38, 0))), 0) as now_pusd,
  coalesce(sum(first_of.pusd), 0) as first_pusd,
  coalesce(sum(second_of.pusd), 0) as second_pusd
from both_of
left join first_of on both_of.rid = first_of.rid
left join second_of on both_of.rid = second_of.rid
group by both_of.feature
