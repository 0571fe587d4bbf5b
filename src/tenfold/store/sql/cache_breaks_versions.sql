-- The requests as they would be under one change each: what was lost read from the cache (hit), what was written in
-- vain sent uncached (unread), everything written with the longer lifetime and read within it (long).
-- in:  cache_breaks_now: the judged requests, priced; cache_breaks_changes(change)
-- out: columns of requests with the changed counts, what they were judged, and what they cost as logged
-- units: tokens; now_pusd in pUSD
select
  {kept},
  p.provider,
  p.model,
  c.change,
  p.cause,
  p.broken_at,
  p.broken_token,
  p.lost_tokens,
  p.band_tokens,
  p.unread_tokens,
  p.ref_load_id,
  p.ref_source_line,
  p.ref_dedup_key,
  p.price_status = 'priced' as was_priced,
  {cost} as now_pusd,
  case c.change when 'hit' then p.cache_read_tokens + p.lost_tokens
    when 'long' then p.cache_read_tokens + p.band_tokens else p.cache_read_tokens end as cache_read_tokens,
  case c.change when 'hit' then p.cache_write_tokens - p.lost_write_tokens
    when 'long' then p.cache_write_tokens - least(p.lost_write_tokens, p.band_tokens)
    else p.cache_write_tokens - p.unread_tokens end as cache_write_tokens,
  case c.change when 'hit' then p.cache_write_long_tokens - p.lost_write_long_tokens
    when 'long' then p.cache_write_tokens - least(p.lost_write_tokens, p.band_tokens)
    else case when p.cache_write_long_tokens > p.cache_write_tokens - p.unread_tokens
      then p.cache_write_tokens - p.unread_tokens else p.cache_write_long_tokens end end as cache_write_long_tokens
from {priced} as p
cross join cache_breaks_changes as c
where (c.change = 'hit' and p.lost_tokens > 0)
  or (c.change = 'unread' and p.unread_tokens > 0)
  or (c.change = 'long' and p.long_lifetime_s is not null and (p.cache_write_tokens > 0 or p.band_tokens > 0))
