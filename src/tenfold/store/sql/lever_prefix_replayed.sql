-- Requests as the replayed cache would bill them: what it finds is read, the rest up to the breakpoint written where writes
-- have a price, and everything after it is uncached. What no cache serves stays as it was.
-- in:  versions of requests; read tokens
-- out: the versions, with new cached counts
-- units: tokens
with joined as (
  select
    v.*,
    w.rid is not null as is_served,
    w.read_tokens,
    case when w.has_write then w.reaches_tokens - w.read_tokens else 0 end as written_tokens
  from {requests} as v
  left join {read} as w on v.call_id = w.rid and v.combo = w.combo
)
select
  *,
  case when is_served then read_tokens else cache_read_tokens end as new_cache_read_tokens,
  case when is_served then written_tokens else cache_write_tokens end as new_cache_write_tokens,
  case when is_served then {written_long} else cache_write_long_tokens end as new_cache_write_long_tokens{media}
from joined
