-- A fleet's traffic hour by hour.
-- in:  fleet_hours(stretch, hour_us, begins_us, ends_us); fleet_requests; levels of all replicas together (see
--      fleet_levels.sql)
-- out: one row a stretch and hour: requests that start in it and their tokens, under_way_us (request-microseconds, NULL
--      where no request of the stretch has a duration), peak (the most at once, NULL likewise)
with started as (
  select
    stretch,
    starts_us - starts_us % 3600000000 as hour_us,
    count(*) as requests,
    sum(uncached_tokens + cached_tokens) as input_tokens,
    sum(output_tokens) as output_tokens
  from fleet_requests
  group by stretch, starts_us - starts_us % 3600000000
),
flowing as (
  select stretch, hour_us, sum(under_way * lasts_us) as under_way_us, max(under_way) as peak
  from {levels}
  group by stretch, hour_us
)
select
  hours.stretch,
  hours.hour_us,
  cast(coalesce(started.requests, 0) as bigint) as requests,
  cast(coalesce(started.input_tokens, 0) as bigint) as input_tokens,
  cast(coalesce(started.output_tokens, 0) as bigint) as output_tokens,
  cast(flowing.under_way_us as bigint) as under_way_us,
  cast(flowing.peak as bigint) as peak
from fleet_hours as hours
left join started on hours.stretch = started.stretch and hours.hour_us = started.hour_us
left join flowing on hours.stretch = flowing.stretch and hours.hour_us = flowing.hour_us
order by hours.stretch, hours.hour_us
