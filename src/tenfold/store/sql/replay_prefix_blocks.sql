-- Blocks that requests touch, long.
-- in:  requests, numbered; the blocks of all prompts: rid, block_no from 1, hash (cumulative)
-- out: one row a (request, block): block_no from 1, behind those dropped
select n.request_no, n.world, b.hash, b.block_no - n.dropped as block_no
from {numbered} as n
join {all_blocks} as b on n.request = b.rid
where b.block_no > n.dropped and b.block_no <= n.dropped + n.reach_blocks
