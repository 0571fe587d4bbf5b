-- How many prompt blocks had been there before: hashes are cumulative, so a block that is known has a known prefix. This
-- is what a cache without a limit would hold, whoever asks and however late.
-- in:  cells: the window's requests as cells, with prefix_hashes (a list of cumulative hashes, one a block), unnested as
--      in replay_prefix_blocks.sql
-- out: one row: blocks, and distinct ones
with touched as (
  select lower(model) as model, unnest(prefix_hashes) as hash
  from {cells}
  where prefix_hashes is not null and not coalesce(gateway_cache_hit, false)
),
kinds as (
  select model, hash, count(*) as times
  from touched
  group by model, hash
)
select cast(coalesce(sum(times), 0) as bigint) as blocks, cast(count(*) as bigint) as distinct_blocks
from kinds
