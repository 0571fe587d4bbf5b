-- What a set of levers leaves of the bill, by owner and meter: requests that it leaves alone as they were priced, and the
-- versions of the others priced again.
-- in:  lever_base; the first versions, and the bits that are pulled; the kept versions of what it changes, priced
-- out: one row a (feature, team, model as logged), costs in pUSD, NULL where nothing has a price
with alike as (
  select b.feature, b.team, b.model, {meters}
  from lever_base as b
  left join {rows} as r on b.rid = r.rid
  where b.is_billed and (coalesce(r.touch, 0) & {pulled}) = 0
),
changed as (
  select b.feature, b.team, b.model, {changed_meters}
  from {priced} as p
  join lever_base as b on p.rid = b.rid
),
both_of as (
  select * from alike
  union all
  select * from changed
)
select
  feature,
  team,
  model,
  {meter_sums}
from both_of
group by feature, team, model
