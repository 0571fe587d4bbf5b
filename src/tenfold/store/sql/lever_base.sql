-- The requests of the window, priced as they are, in the columns that levers read: computed once.
-- in:  the log with its marks, priced; the day as the report zone cuts it; columns that levers judge by; counts in use
-- out: one row a request: rid, call_id, block_day (NULL without a time), user_bucket (two digits of the md5 of user_id, empty
--      without one), price_key, status, owner, counts, marks, cost
-- units: tokens; cost in pUSD, NULL where there is no price
select
  p.rid,
  p.rid as call_id,
  case when p.is_dated then {day} end as block_day,
  coalesce(substr(md5(p.user_id), 1, 2), '') as user_bucket,
  p.ts,
  p.price_key,
  p.price_status,
  p.is_billed,
  p.feature,
  p.team,
  p.model,
  {columns},
  {cost} as cost_pusd
from {priced} as p
