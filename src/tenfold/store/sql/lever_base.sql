-- The log as the levers meet it: its requests, what each lever may touch, and the next turn of the same session.
-- in:  the requests table
-- out: every column of requests, per lever in_<lever> (its where) and allowed_<lever> (service levels), next_ts: start
--      of the next later request of the same session, over the whole log, NULL where there is none
with marked as (
  select
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
)
select
    {marked},
    turns.next_ts
from marked
left join turns on marked.session_id = turns.session_id and marked.ts = turns.ts
