-- What a replay would be made of, told by its content: equal sums, equal replay.
-- in:  what each request reaches
-- out: requests, blocks (who touches what), times (when, and for how long)
select
  cast(count(*) as bigint) as requests,
  sum(cast(hash(g.rid, g.combo, g.pool, g.dropped, g.reach_blocks, g.request) as decimal(38, 0))) as blocks,
  sum(cast(hash(g.rid, g.combo, g.ts, g.readable_at, g.lifetime_us) as decimal(38, 0))) as times
from {reached} as g
