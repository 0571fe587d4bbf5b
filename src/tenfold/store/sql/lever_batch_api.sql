-- Requests that can wait, in another tier or at cheaper hours. Cached reads that are lost become uncached input.
-- in:  the requests; the keys: price_key, moved_key, kept_num, kept_den (the share of cached reads that stay cached, as a
--      fraction of whole numbers); hours: price_key, starts, ends, moved_to (no rows but for cheaper hours)
-- out: the requests, with the key, the start and the reads that they then have
-- units: tokens, the kept share rounded half up; cached media are parts of it, rounded down so that they stay parts
with joined as (
  select
    p.*,
    k.moved_key,
    h.moved_to,
    p.cache_read_tokens * 2 * k.kept_num + k.kept_den as twice_kept,
    2 * k.kept_den as twice_den,
    k.kept_num,
    k.kept_den
  from {requests} as p
  left join {keys} as k on p.price_key = k.price_key
  left join {hours} as h on p.price_key = h.price_key and p.ts >= h.starts and p.ts < h.ends
)
select
  *,
  moved_key as new_price_key,
  coalesce(moved_to, ts) as new_ts,
  cast((twice_kept - twice_kept % twice_den) / twice_den as bigint) as new_cache_read_tokens{media}
from joined
