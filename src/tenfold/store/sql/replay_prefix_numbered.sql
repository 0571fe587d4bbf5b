-- Requests of a prefix replay, numbered. A world is a (combo, pool): no block is shared between two.
-- in:  requests: rid, combo, pool, ts, readable_at, lifetime_us
-- out: one row a request that has a pool: request_no, world, oldest (a touch before it is forgotten at ts), readable_at: not before ts
with worlds as (
  select combo, pool, row_number() over (order by combo, pool) as world
  from (select distinct combo, pool from {requests} where pool is not null) as used
)
select
  row_number() over (order by r.combo, r.rid) as request_no,
  r.rid,
  r.combo,
  worlds.world,
  r.ts,
  greatest(coalesce(r.readable_at, r.ts), r.ts) as readable_at,
  r.ts
    - interval '1' second * cast((r.lifetime_us - r.lifetime_us % 1000000) / 1000000 as int)
    - interval '0.000001' second * cast(r.lifetime_us % 1000000 as int) as oldest
from {requests} as r
join worlds on r.combo = worlds.combo and r.pool = worlds.pool
