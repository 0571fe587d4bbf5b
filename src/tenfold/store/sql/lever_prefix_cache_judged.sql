-- Which requests used a prompt cache.
-- in:  lever_base
-- out: rid, and fate: touched, or why not; NULL outside where
select
  b.rid,
  case
    when not b.in_prefix_cache then null
    when not b.is_billed then 'not_billed'
    when b.price_status <> 'priced' then 'unpriced'
    when b.cache_read_tokens is null and b.cache_write_tokens is null then 'split_unknown'
    when coalesce(b.cache_read_tokens, 0) = 0 and coalesce(b.cache_write_tokens, 0) = 0 then 'not_cached'
    else 'touched'
  end as fate
from lever_base as b
