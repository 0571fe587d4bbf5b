-- How many requests two replays have alike.
-- in:  what each request reaches, in both
-- out: requests of either; those that touch the same blocks (who touches what), and of them those at the same times (when,
--      and for how long)
with compared as (
  select
    coalesce(
      g.pool = e.pool and g.dropped = e.dropped and g.reach_blocks = e.reach_blocks and g.request = e.request, false
    ) and (g.ts is null) = (e.ts is null) as is_same,
    g.ts is not distinct from e.ts
      and g.readable_at is not distinct from e.readable_at
      and g.lifetime_us is not distinct from e.lifetime_us as is_same_time
  from {reached} as g
  full join {earlier} as e on g.rid = e.rid and g.combo = e.combo
)
select
  cast(count(*) as bigint) as requests,
  cast(coalesce(sum(case when is_same then 1 else 0 end), 0) as bigint) as same_blocks,
  cast(coalesce(sum(case when is_same and is_same_time then 1 else 0 end), 0) as bigint) as same
from compared
