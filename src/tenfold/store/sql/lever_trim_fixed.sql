-- How much of the prompts is fixed text: leading blocks that many requests of the same feature share. Hashes cover all that
-- is before them, so equal hashes are equal heads.
-- in:  what trim judged; lever_log; prefix_blocks; how many other requests share a block at least
-- out: one row a feature: requests with hashes, their input, and how much of it is in such blocks
-- units: tokens, whole blocks, never more than the input
with blocks as (
  select l.rid, coalesce(l.feature, '') as feature, p.hash
  from {judged} as j
  join lever_log as l on j.rid = l.rid
  join prefix_blocks as p on l.rid = p.rid
  where j.fate is not null and j.fate <> 'not_billed'
),
common as (
  select feature, hash
  from blocks
  group by feature, hash
  having count(*) > {others}
),
fixed as (
  select b.rid, count(c.hash) as fixed_blocks
  from blocks as b
  left join common as c on b.feature = c.feature and b.hash = c.hash
  group by b.rid
)
select
  nullif(coalesce(l.feature, ''), '') as feature,
  cast(count(*) as bigint) as requests,
  cast(coalesce(sum(l.input_tokens), 0) as bigint) as input_tokens,
  cast(coalesce(sum(least(l.input_tokens, f.fixed_blocks * l.prefix_block_tokens)), 0) as bigint) as fixed_tokens
from fixed as f
join lever_log as l on f.rid = l.rid
group by nullif(coalesce(l.feature, ''), '')
