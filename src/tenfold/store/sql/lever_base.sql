-- The requests of the window, priced as they are, in the columns that levers read: computed once. Beside them the next
-- turn of the same session, and retries of an attempt that was billed itself.
-- in:  the log with its marks, priced; the day as the report zone cuts it; columns that levers judge by; counts in use
-- out: one row a request: rid, call_id, block_day (NULL without a time), user_bucket (two digits of the md5 of user_id,
--      empty without one), price_key, status, owner, counts, marks, cost; next_ts: start of the next later request of the
--      same session over the whole log, NULL where there is none; is_rebilled
-- units: tokens; cost in pUSD, NULL where there is no price
with starts as (
  select distinct session_id, ts
  from requests
  where session_id is not null and ts is not null
),
turns as (
  select session_id, ts, lead(ts) over (partition by session_id order by ts) as next_ts
  from starts
),
retried as (
  select distinct request_id
  from requests
  where request_id in (select retry_of from requests where retry_of is not null)
    and coalesce(is_billable, true)
    and not coalesce(gateway_cache_hit, false)
    and coalesce(input_tokens, 0) + coalesce(output_tokens, 0) > 0
)
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
  turns.next_ts,
  retried.request_id is not null as is_rebilled,
  {cost} as cost_pusd
from {priced} as p
left join turns on p.session_id = turns.session_id and p.ts = turns.ts
left join retried on p.retry_of = retried.request_id
