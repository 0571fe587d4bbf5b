-- How many prompt blocks had been there before: hashes are cumulative, so a block that is known has a known prefix. This
-- is what a cache without a limit would hold, whoever asks and however late.
-- in:  the requests table, what numbers its rows, which of them count; prefix_blocks
-- out: one row: blocks, and distinct ones
with asked as (
  select {row_id} as rid, lower(model) as model
  from requests
  where {condition} and not coalesce(gateway_cache_hit, false)
),
kinds as (
  select a.model, b.hash, count(*) as times
  from asked as a
  join prefix_blocks as b on a.rid = b.rid
  group by a.model, b.hash
)
select cast(coalesce(sum(times), 0) as bigint) as blocks, cast(count(*) as bigint) as distinct_blocks
from kinds
