-- What was asked of each stretch of a fleet.
-- in:  fleet_requests
-- out: one row a stretch that has requests: requests, tokens by kind, requests with a duration, those that took any
--      time, those of them with a replica, and how many different replicas
select
  stretch,
  cast(count(*) as bigint) as requests,
  cast(sum(uncached_tokens) as bigint) as uncached_tokens,
  cast(sum(cached_tokens) as bigint) as cached_tokens,
  cast(sum(output_tokens) as bigint) as output_tokens,
  cast(count(lasts_us) as bigint) as timed_requests,
  cast(count(case when lasts_us > 0 then 1 end) as bigint) as lasting_requests,
  cast(count(case when lasts_us > 0 then replica end) as bigint) as placed_requests,
  cast(count(distinct replica) as bigint) as replicas_seen
from fleet_requests
group by stretch
