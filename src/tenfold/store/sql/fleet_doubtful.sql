-- Requests whose duration may be wrong, to name them.
-- in:  fleet_log
-- out: up to two rows: the request that ends last (is_odd false), and the first whose duration is no time (is_odd true)
select *
from (
  select false as is_odd, request_id, source_file, source_line
  from fleet_log
  where starts_us is not null
  order by starts_us + coalesce(lasts_us, 0) desc nulls last, source_file nulls last, source_line nulls last
  limit 1
) as latest
union all
select *
from (
  select true as is_odd, request_id, source_file, source_line
  from fleet_log
  where is_odd
  order by source_file nulls last, source_line nulls last
  limit 1
) as odd
