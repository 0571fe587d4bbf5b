-- Requests in flight over time: a sweep over starts (+1) and ends (-1), to the whole millisecond. A request that ends
-- when another starts does not overlap it.
-- in:  requests as cells (cells_requests), calendar(day, day_number), buckets(starts_ms), ascending, the last one closing
-- out: one row a bucket: the most at once, and request-milliseconds in flight (over the bucket's length: the average)
with spans as (
  select
    cast(floor(calendar.day_number * 86400000 + extract(hour from ts) * 3600000 + extract(minute from ts) * 60000
      + cast(substring(cast(ts as string), 18) as double) * 1000) as bigint) as starts_ms,
    cast(round(duration_ms) as bigint) as lasts_ms
  from cells_requests
  join calendar on calendar.day = cast(ts as date)
  where {condition} and duration_ms > 0 and not coalesce(gateway_cache_hit, false)
),
changes as (
  select starts_ms as at_ms, cast(1 as bigint) as change, cast(null as bigint) as bucket_ms from spans
  union all
  select starts_ms + lasts_ms as at_ms, cast(-1 as bigint) as change, cast(null as bigint) as bucket_ms from spans
  union all
  select starts_ms as at_ms, cast(0 as bigint) as change, starts_ms as bucket_ms from buckets
),
instants as (
  select at_ms, cast(sum(change) as bigint) as change, max(bucket_ms) as bucket_ms
  from changes
  group by at_ms
),
levels as (
  select
    max(bucket_ms) over (order by at_ms rows between unbounded preceding and current row) as bucket_ms,
    cast(sum(change) over (order by at_ms rows between unbounded preceding and current row) as bigint) as in_flight,
    lead(at_ms) over (order by at_ms) - at_ms as lasts_ms
  from instants
)
select
  bucket_ms,
  max(in_flight) as peak,
  cast(coalesce(sum(in_flight * lasts_ms), 0) as bigint) as busy_ms
from levels
group by bucket_ms
order by bucket_ms
