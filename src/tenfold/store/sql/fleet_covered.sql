-- From when to when a log runs: all its requests with a time, of any provider and in any window.
-- in:  fleet_log
-- out: one row: first start, last start and last end in whole microseconds since 1970 (NULL where nothing has a time),
--      how many self-hosted requests have a time and how many have none, and how many requests say a duration that is
--      no time
select
  min(starts_us) as since_us,
  max(starts_us) as last_start_us,
  max(starts_us + greatest(coalesce(lasts_us, 0), 1)) as until_us,
  cast(count(case when is_hosted and starts_us is not null then 1 end) as bigint) as hosted_dated,
  cast(count(case when is_hosted and starts_us is null then 1 end) as bigint) as hosted_undated,
  cast(count(case when is_odd then 1 end) as bigint) as odd
from fleet_log
