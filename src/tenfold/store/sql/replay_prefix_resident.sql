-- Whether each touched block is in the cache, and readable, when its request begins. A residence is a row of touches
-- with no gap beyond the lifetime (of touches at one instant, the longest); an entry is readable from the earliest first
-- token of its residence on. First tokens of touches at or after an instant never come before it, so that the whole
-- residence can be looked at; touches at one instant do not serve each other. Only blocks with an open touch are looked
-- at in whole.
-- in:  spaced touches
-- out: one row a touch: request_no, block_no, before_blocks, is_resident
with open_blocks as (
  select distinct block_id from {spaced} where is_open
),
residences as (
  select
    s.request_no,
    s.block_id,
    s.block_no,
    s.before_blocks,
    s.ts,
    s.readable_at,
    s.oldest,
    max(case when s.last_ts < s.ts then s.last_ts end) over (
      partition by s.block_id order by s.ts, s.oldest rows between unbounded preceding and current row
    ) as touched_at,
    sum(case when s.is_near then 0 else 1 end) over (
      partition by s.block_id order by s.ts, s.oldest rows between unbounded preceding and current row
    ) as residence
  from {spaced} as s
  join open_blocks as o on s.block_id = o.block_id
)
select
  request_no,
  block_no,
  before_blocks,
  coalesce(touched_at >= oldest, false)
    and min(readable_at) over (partition by block_id, residence) < ts as is_resident
from residences
union all
select s.request_no, s.block_no, s.before_blocks, s.is_read as is_resident
from {spaced} as s
left join open_blocks as o on s.block_id = o.block_id
where o.block_id is null
