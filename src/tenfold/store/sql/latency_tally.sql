-- What a window of the p99 runbook leaves out, and the time that its log covers.
-- in:  the requests table
-- out: one row; all_*: of the log, whatever is asked for; the rest: of the rows asked for
with told as (
  select
    ts,
    coalesce(gateway_cache_hit, false) as is_hit,
    coalesce({where}, false) as is_asked,
    coalesce({condition}, false) as is_within
  from {requests}
)
select
  cast(count(*) as bigint) as all_rows,
  min(ts) as all_first,
  max(ts) as all_last,
  cast(coalesce(sum(case when is_asked then 1 else 0 end), 0) as bigint) as asked_rows,
  cast(coalesce(sum(case when is_asked and ts is null then 1 else 0 end), 0) as bigint) as undated_rows,
  cast(coalesce(sum(case when is_asked and is_within and is_hit then 1 else 0 end), 0) as bigint) as gateway_hits
from told
