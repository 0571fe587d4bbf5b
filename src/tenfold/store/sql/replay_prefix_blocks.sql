-- Blocks that requests touch, long. The one step of the replay that an engine whose lists differ brings its own text
-- for (DuckDB unnests); published logs hold blocks in this shape.
-- in:  requests, with blocks: a list of cumulative hashes; the same, numbered
-- out: one row a (request, block): block_no from 1
select
  n.request_no,
  n.world,
  unnest(r.blocks) as hash,
  generate_subscripts(r.blocks, 1) as block_no
from {requests} as r
join {numbered} as n on r.combo = n.combo and r.rid = n.rid
where r.ts is not null
