-- Which requests a replay of prompt caches can serve.
-- in:  lever_base; the prompts; prefix_blocks (whose first tells prompts that begin alike); the cache rules of its price
--      keys
-- out: rid, who may share its prefix, what a replay needs of it, and fate: touched, or why
--      not; nothing outside where
select
  b.rid,
  {group} as prefix_group,
  p.org,
  p.project,
  p.session_id,
  p.prefix_blocks,
  p.prefix_block_tokens,
  p.first_token_us,
  case
    when not b.is_billed then 'not_billed'
    when b.ts is null or b.input_tokens is null then 'unpriced'
    when r.price_key is null or r.control = 'none' then 'no_rule'
    when {unknown} then 'no_prefix'
    else 'touched'
  end as fate
from lever_base as b
join {prompts} as p on b.rid = p.rid
left join prefix_blocks as head on b.rid = head.rid and head.block_no = 1
left join {rules} as r on b.price_key = r.price_key and b.ts >= r.valid_from and b.ts < r.valid_to
where b.in_prefix_cache
