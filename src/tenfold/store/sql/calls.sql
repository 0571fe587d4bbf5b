-- What single requests say about the log: its range, which are retries, how many have a duration.
-- in:  the window's requests as cells (see cells_requests.sql)
-- out: one row; gateway_hits never reached a provider and are left out of in_flight and timed
select
  min(ts) as first_ts,
  max(ts) as last_ts,
  cast(count(attempt) + count(retry_of) as bigint) as retry_marks,
  cast(coalesce(sum(case when is_billed and (attempt > 0 or retry_of is not null) then 1 else 0 end), 0) as bigint)
    as retries,
  cast(coalesce(sum(case when coalesce(gateway_cache_hit, false) then 1 else 0 end), 0) as bigint) as gateway_hits,
  cast(coalesce(sum(case when coalesce(gateway_cache_hit, false) then 0 else 1 end), 0) as bigint) as in_flight,
  cast(coalesce(sum(case when not coalesce(gateway_cache_hit, false) and ts is not null and duration_ms >= 0
    and duration_ms < 1000000000000 then 1 else 0 end), 0) as bigint) as timed
from {cells}
