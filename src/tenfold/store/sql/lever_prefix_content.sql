-- What a replay would be made of, in sums: equal replays have equal ones.
-- in:  what each request reaches
-- out: requests, blocks, dropped
select
  cast(count(*) as bigint) as requests,
  cast(coalesce(sum(g.reach_blocks), 0) as bigint) as blocks,
  cast(coalesce(sum(g.dropped), 0) as bigint) as dropped
from {reached} as g
