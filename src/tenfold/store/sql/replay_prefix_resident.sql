-- Whether each touched block is in the cache, and readable, when its request begins. A residence is a row of touches
-- with no gap beyond the lifetime (of touches at one instant, the longest); an entry is readable from the earliest first
-- token of its residence on. First tokens of touches at or after an instant never come before it, so that the whole
-- residence can be looked at; touches at one instant do not serve each other.
-- in:  touches
-- out: one row a touch: request_no, block_no, before_blocks, is_resident
with spaced as (
  select
    request_no,
    block_id,
    block_no,
    before_blocks,
    ts,
    readable_at,
    oldest,
    lag(ts) over (partition by block_id order by ts, oldest) as last_ts
  from {touches}
),
residences as (
  select
    request_no,
    block_id,
    block_no,
    before_blocks,
    ts,
    readable_at,
    oldest,
    max(case when last_ts < ts then last_ts end) over (
      partition by block_id order by ts, oldest rows between unbounded preceding and current row
    ) as touched_at,
    sum(case when coalesce(last_ts >= oldest, false) then 0 else 1 end) over (
      partition by block_id order by ts, oldest rows between unbounded preceding and current row
    ) as residence
  from spaced
)
select
  request_no,
  block_no,
  before_blocks,
  coalesce(touched_at >= oldest, false)
    and min(readable_at) over (partition by block_id, residence) < ts as is_resident
from residences
