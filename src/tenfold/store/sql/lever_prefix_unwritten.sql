-- The replayed requests as if writing to the cache cost nothing extra: what they write is billed as uncached input.
-- in:  versions of requests that the replay made
-- out: the versions, with new written counts of 0
-- units: tokens
select
  v.*,
  cast(0 as bigint) as new_cache_write_tokens,
  cast(0 as bigint) as new_cache_write_long_tokens
from {requests} as v
