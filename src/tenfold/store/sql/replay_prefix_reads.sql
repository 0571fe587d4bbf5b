-- Leading blocks that each request reads: all that come before the first run that is not there.
-- in:  touches, judged; the requests, numbered
-- out: one row a request that has a pool: rid, combo, read_blocks (0 where none)
with runs as (
  select
    request_no,
    coalesce(min(case when not is_resident then before_blocks end), max(block_no)) as read_blocks
  from {resident}
  group by request_no
)
select n.rid, n.combo, cast(coalesce(runs.read_blocks, 0) as int) as read_blocks
from {numbered} as n
left join runs on n.request_no = runs.request_no
