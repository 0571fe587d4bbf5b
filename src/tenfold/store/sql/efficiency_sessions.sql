-- Sessions of more than one turn: their last input against their first.
-- in:  efficiency_turns
-- out: the one or two sessions in the middle by that ratio, each beside the sums over all: sessions, grown (last above
--      first), last_sum, first_sum; no row without such a session; sessions that begin with an empty input are left out
-- units: tokens
with ends as (
  select input_tokens as last_tokens, first_tokens
  from efficiency_turns
  where turn = turns and turns > 1 and first_tokens > 0
),
placed as (
  select
    last_tokens,
    first_tokens,
    row_number() over (
      order by cast(last_tokens as double) / first_tokens, first_tokens, last_tokens
    ) as place,
    count(*) over () as sessions
  from ends
),
summed as (
  select
    cast(sum(case when last_tokens > first_tokens then 1 else 0 end) as bigint) as grown,
    cast(sum(last_tokens) as bigint) as last_sum,
    cast(sum(first_tokens) as bigint) as first_sum
  from ends
)
select p.last_tokens, p.first_tokens, cast(p.sessions as bigint) as sessions, s.grown, s.last_sum, s.first_sum
from placed as p
cross join summed as s
where 2 * p.place in (p.sessions, p.sessions + 1, p.sessions + 2)
