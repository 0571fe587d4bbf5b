-- Tokens that each request reads under the provider's rules: whole increments, nothing below the minimum.
-- in:  what each request reaches; what the replay found
-- out: rid, combo, tokens up to the breakpoint, read tokens, whether writes have a price
-- units: tokens
with counted as (
  select g.rid, g.combo, g.reaches_tokens, g.min_tokens, g.increment_tokens, g.has_write, {found} as found_tokens
  from {reached} as g
  join {reads} as w on g.rid = w.rid and g.combo = w.combo
),
whole as (
  select
    *,
    case when increment_tokens > 0 then found_tokens - found_tokens % increment_tokens else found_tokens end
      as whole_tokens
  from counted
)
select
  rid,
  combo,
  reaches_tokens,
  has_write,
  cast(case when whole_tokens >= min_tokens then whole_tokens else 0 end as bigint) as read_tokens
from whole
