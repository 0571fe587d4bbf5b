-- Blocks that more than one request touches; no other can be read.
-- in:  blocks, long
-- out: one row a block: how many requests touch it, and block_id, exact and without a second sort: the place where the
--      first request that touches it has it (request number x 2^26 + block number)
select
  world,
  hash,
  min(request_no * 67108864 + block_no) as block_id,
  count(*) as requests
from {blocks}
group by world, hash
having count(*) > 1
