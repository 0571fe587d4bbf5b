-- What levers charge by the request (lookups, routers, classifiers), by day and by group of users.
-- in:  the first version of the requests: a fee a lever, 0 outside its where
-- out: one row a (touch, block_day) and one a (touch, user_bucket), the other of the two NULL; a column a fee
-- units: pUSD
select
  r.touch,
  r.reach,
  r.block_day,
  r.user_bucket,
  grouping(r.user_bucket) as is_day,
  {fees}
from {rows} as r
group by grouping sets ((r.touch, r.reach, r.block_day), (r.touch, r.reach, r.user_bucket))
