-- The blocks that each request touches, for the replay.
-- in:  what each request reaches; the prompts
-- out: as the replay wants it: blocks cut at the breakpoint, NULL where nothing is touched
select
  g.rid,
  g.combo,
  g.pool,
  g.ts,
  g.readable_at,
  g.lifetime_us,
  case when g.reach_blocks > 0
    then list_slice(p.prefix_hashes, cast(g.dropped + 1 as bigint), cast(g.dropped + g.reach_blocks as bigint)) end
    as blocks
from {reached} as g
join {prompts} as p on g.request = p.rid
