-- Tokens that each turn reads of the turn before it, where a log has sessions but no hashes: the whole prompt of that
-- turn, as far as both reach, if this prompt is not shorter. Turns that begin at one instant count as one: the last.
-- in:  requests: rid, combo, pool, session_id, ts, readable_at, lifetime_us, input_tokens, reaches_tokens
-- out: one row a request that has a pool: rid, combo, read_tokens (0 where none)
with placed as (
  select
    combo,
    pool,
    session_id,
    ts,
    coalesce(readable_at, ts) as readable_at,
    input_tokens,
    reaches_tokens,
    row_number() over (partition by combo, pool, session_id, ts order by rid desc) as place
  from {requests}
  where pool is not null and session_id is not null and ts is not null
),
turns as (
  select
    combo,
    pool,
    session_id,
    ts,
    lag(ts) over (partition by combo, pool, session_id order by ts) as last_ts,
    lag(readable_at) over (partition by combo, pool, session_id order by ts) as last_readable_at,
    lag(input_tokens) over (partition by combo, pool, session_id order by ts) as last_input_tokens,
    lag(reaches_tokens) over (partition by combo, pool, session_id order by ts) as last_reaches_tokens
  from placed
  where place = 1
)
select
  r.rid,
  r.combo,
  case
    when t.last_ts
        + interval '1' second * cast((r.lifetime_us - r.lifetime_us % 1000000) / 1000000 as int)
        + interval '0.000001' second * cast(r.lifetime_us % 1000000 as int) >= r.ts
      and t.last_readable_at < r.ts
      and r.input_tokens >= t.last_input_tokens
      then cast(least(coalesce(t.last_reaches_tokens, 0), coalesce(r.reaches_tokens, 0)) as bigint)
    else 0
  end as read_tokens
from {requests} as r
left join turns as t
  on r.combo = t.combo and r.pool = t.pool and r.session_id = t.session_id and r.ts = t.ts
where r.pool is not null
