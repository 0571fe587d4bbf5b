-- Last blocks of runs that the same requests share. Hashes are cumulative, so who touches a block touches all before
-- it: two blocks in a row are shared by the same requests where their numbers are equal, and the first of these is then
-- the same. Blocks that have their first request in common lie in a row.
-- in:  shared blocks
-- out: one row a run: world, hash and block_id of its last block; before_blocks: how many blocks come before the run
with placed as (
  select
    world,
    hash,
    block_id,
    block_id - block_id % 67108864 as first_request,
    requests,
    lag(requests) over (partition by block_id - block_id % 67108864 order by block_id) as last_requests
  from {shared}
),
judged as (
  select
    world,
    hash,
    block_id,
    first_request,
    coalesce(last_requests = requests, false) as goes_on
  from placed
),
runs as (
  select
    world,
    hash,
    block_id,
    max(case when not goes_on then block_id % 67108864 - 1 end) over (
      partition by first_request order by block_id rows between unbounded preceding and current row
    ) as before_blocks,
    lead(goes_on) over (partition by first_request order by block_id) as next_goes_on
  from judged
)
select world, hash, block_id, before_blocks
from runs
where not coalesce(next_goes_on, false)
