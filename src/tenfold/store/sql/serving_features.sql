-- What the requests of a window say about the engine that would suit them. Gateway hits never reached one and are left
-- out; a row whose part is unknown is left out of that ratio and counted beside it.
-- in:  cells: the window's requests as cells (see cells_requests.sql)
-- out: one row; tokens and milliseconds; sessions of one request are no multi-turn ones
with calls as (
  select
    *,
    -- a time that no call can take (30 years, not a number) is not known
    ttft_ms >= 0 and ttft_ms < 1000000000000 and duration_ms > 0 and duration_ms < 1000000000000 as has_times
  from {cells}
  where not coalesce(gateway_cache_hit, false)
),
sessions as (
  select session_id, count(*) as turns
  from calls
  where session_id is not null
  group by session_id
),
turns as (
  select
    cast(coalesce(sum(turns), 0) as bigint) as session_requests,
    cast(coalesce(sum(case when turns > 1 then turns else 0 end), 0) as bigint) as multi_turn_requests
  from sessions
)
select
  cast(count(*) as bigint) as requests,
  cast(count(input_tokens) as bigint) as input_known,
  cast(coalesce(sum(input_tokens), 0) as bigint) as input_tokens,
  cast(count(output_tokens) as bigint) as output_known,
  cast(coalesce(sum(output_tokens), 0) as bigint) as output_tokens,
  cast(coalesce(sum(case when cache_read_tokens is not null then input_tokens end), 0) as bigint) as read_known_tokens,
  cast(coalesce(sum(case when input_tokens is not null then cache_read_tokens end), 0) as bigint) as cache_read_tokens,
  cast(count(is_structured) as bigint) as structured_known,
  cast(coalesce(sum(case when is_structured then 1 else 0 end), 0) as bigint) as structured_requests,
  cast(coalesce(sum(case when has_times then ttft_ms end), 0) as double) as ttft_ms,
  cast(coalesce(sum(case when has_times then duration_ms end), 0) as double) as ttft_known_ms,
  cast(count(distinct lower(model)) as bigint) as models,
  cast(count(prefix_hashes) as bigint) as hashed_requests,
  max(turns.session_requests) as session_requests,
  max(turns.multi_turn_requests) as multi_turn_requests
from calls
cross join turns
