-- Requests of a prefix replay, numbered. A world is a (combo, pool): no block is shared between two.
-- in:  requests: rid, combo, pool
-- out: one row a request that has a pool: request_no, world
with worlds as (
  select combo, pool, row_number() over (order by combo, pool) as world
  from (select distinct combo, pool from {requests} where pool is not null) as used
)
select
  row_number() over (order by r.combo, r.rid) as request_no,
  r.rid,
  r.combo,
  worlds.world
from {requests} as r
join worlds on r.combo = worlds.combo and r.pool = worlds.pool
