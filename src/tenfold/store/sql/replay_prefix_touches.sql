-- Touches of the blocks that end a run: all that the replay has to walk.
-- in:  blocks, long; ends
-- out: one row a (request, run): block_no is the length of the prefix that the run ends, before_blocks what comes before
select b.request_no, e.block_id, b.block_no, e.before_blocks
from {blocks} as b
join {ends} as e on b.world = e.world and b.hash = e.hash
