-- How far into its prompt each request's cache breakpoint reaches, and by which rules.
-- in:  versions of requests; what was judged of their prompts; the cache rules of their price keys, dated; blocks that editing left
-- out: one row a version that a cache may serve: rid (the call), combo, pool (who shares its entries), start, first token,
--      lifetime, the blocks and tokens up to the breakpoint (0 below the minimum: nothing is read or written), the same
--      tokens whatever the minimum as input_tokens, rules
-- units: tokens; microseconds
with placed as (
  select
    v.call_id,
    v.rid as request,
    v.combo,
    v.ts,
    v.input_tokens,
    coalesce(v.cache_read_tokens, 0) + coalesce(v.cache_write_tokens, 0) as cached_tokens,
    p.session_id,
    p.prefix_block_tokens,
    concat(
      r.provider, chr(31), r.model, chr(31), coalesce(p.org, ''), chr(31),
      case when r.is_isolated_by_project then coalesce(p.project, '') else '' end
    ) as cache,
    p.first_token_us + {delay_us} as first_token_us,
    {lifetime} as lifetime_us,
    r.control,
    r.min_tokens,
    r.increment_tokens,
    r.has_write,
    {dropped} as dropped,
    {kept} as kept
  from {requests} as v
  join {judged} as p on v.rid = p.rid
  join {rules} as r on v.price_key = r.price_key and v.ts >= r.valid_from and v.ts < r.valid_to
  where v.set_pusd is null and r.control <> 'none' and v.input_tokens is not null
),
aimed as (
  select *, {blocks} as aimed_blocks, {tokens} as aimed_tokens
  from placed
)
select
  call_id as rid,
  request,
  combo,
  concat(cache, chr(31), cast(dropped as varchar(20))) as pool,
  session_id,
  ts,
  ts
    + interval '1' second * cast((first_token_us - first_token_us % 1000000) / 1000000 as int)
    + interval '0.000001' second * cast(first_token_us % 1000000 as int) as readable_at,
  lifetime_us,
  aimed_tokens as input_tokens,
  prefix_block_tokens,
  dropped,
  case when aimed_tokens > 0 and aimed_tokens >= min_tokens then aimed_blocks else 0 end as reach_blocks,
  case when aimed_tokens > 0 and aimed_tokens >= min_tokens then aimed_tokens else 0 end as reaches_tokens,
  min_tokens,
  increment_tokens,
  has_write
from aimed
