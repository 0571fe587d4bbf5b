-- The log as the levers meet it: its requests, what each lever may touch, the next turn of the same session, and
-- retries of an attempt that was billed itself.
-- in:  the requests table; what numbers its rows
-- out: rid; every column of requests; per lever in_<lever> (its where) and allowed_<lever> (service levels); next_ts:
--      start of the next later request of the same session over the whole log, NULL where there is none; is_rebilled
with marked as (
  select
    {row_id} as rid,
    {columns}{marks}
  from requests
),
starts as (
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
    {marked},
    turns.next_ts,
    retried.request_id is not null as is_rebilled
from marked
left join turns on marked.session_id = turns.session_id and marked.ts = turns.ts
left join retried on marked.retry_of = retried.request_id
