-- What the versions of the requests cost, by day and by group of users.
-- in:  the versions of the requests
-- out: one row a (touch, world, levers, block_day) and one a (touch, world, levers, user_bucket), the other of the two NULL
-- units: costs in pUSD
select
  v.touch,
  v.world,
  v.levers,
  v.block_day,
  v.user_bucket,
  grouping(v.user_bucket) as is_day,
  coalesce(cast(sum(v.cost_pusd) as decimal(38, 0)), 0) as cost_pusd
from {versions} as v
group by grouping sets (
  (v.touch, v.world, v.levers, v.block_day),
  (v.touch, v.world, v.levers, v.user_bucket)
)
