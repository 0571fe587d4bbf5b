-- Requests in flight over time: a sweep over starts (+1) and ends (-1), to the whole millisecond, bucket by bucket. A
-- request that ends when another starts does not overlap it: all changes of one instant count together.
-- in:  the window's requests as cells (see cells_requests.sql), calendar(day, day_number), buckets(starts_ms, ends_ms)
--      of equal length without gaps, bucket_size(size_ms)
-- out: one row a bucket: the most at once, and request-milliseconds in flight (over the bucket's length: the average)
with spans as (
  select
    cast(floor(calendar.day_number * 86400000 + extract(hour from ts) * 3600000 + extract(minute from ts) * 60000
      + cast(substring(cast(ts as string), 18) as double) * 1000) as bigint) as starts_ms,
    cast(round(duration_ms) as bigint) as lasts_ms
  from {cells} as cells
  join calendar on calendar.day = cast(cells.ts as date)
  -- a time that no call can take (30 years, not a number) is not known
  where duration_ms > 0 and duration_ms < 1000000000000 and not coalesce(gateway_cache_hit, false)
),
changes as (
  select starts_ms as at_ms, cast(1 as bigint) as change from spans
  union all
  select starts_ms + lasts_ms as at_ms, cast(-1 as bigint) as change from spans
  union all
  select starts_ms as at_ms, cast(0 as bigint) as change from buckets
),
placed as (
  select at_ms, change, cast(floor(at_ms / size_ms) * size_ms as bigint) as bucket_ms
  from changes
  cross join bucket_size
),
carried as (
  select
    bucket_ms,
    sum(sum(change)) over (order by bucket_ms) - sum(change) as carried_in
  from placed
  group by bucket_ms
),
levels as (
  select
    bucket_ms,
    sum(change) over (partition by bucket_ms order by at_ms) as change,
    lead(at_ms) over (partition by bucket_ms order by at_ms) - at_ms as lasts_ms,
    at_ms
  from placed
)
select
  buckets.starts_ms,
  cast(max(carried_in + change) as bigint) as peak,
  cast(sum((carried_in + change) * coalesce(lasts_ms, ends_ms - at_ms)) as bigint) as busy_ms
from levels
join carried using (bucket_ms)
join buckets on buckets.starts_ms = bucket_ms
group by buckets.starts_ms
order by buckets.starts_ms
