-- Requests of a prefix replay, numbered. A world is a (combo, pool): no block is shared between two.
-- in:  requests: rid, combo, pool, ts; request, dropped and reach_blocks: which of whose blocks they touch
-- out: one row a request that has a pool: request_no, world, and its blocks (none without a time)
with worlds as (
  select combo, pool, cast(row_number() over (order by combo, pool) as bigint) as world
  from (select distinct combo, pool from {requests} where pool is not null) as used
)
select
  cast(row_number() over (order by r.combo, r.rid) as bigint) as request_no,
  r.rid,
  r.combo,
  worlds.world,
  r.request,
  r.dropped,
  case when r.ts is null then 0 else r.reach_blocks end as reach_blocks
from {requests} as r
join worlds on r.combo = worlds.combo and r.pool = worlds.pool
