-- Touches of each block in order of time, each with the one before it, which nearly always decides: a block whose last
-- toucher began within the lifetime and had its first token is there. Open is where that one began at the same instant,
-- or was still waiting for its first token, so that earlier ones must be asked.
-- in:  touches; when their requests begin
-- out: one row a touch, with last_ts, is_near (the last touch is no older than the lifetime), is_read, is_open
with placed as (
  select
    t.request_no,
    t.block_id,
    t.block_no,
    t.before_blocks,
    n.ts,
    n.readable_at,
    n.oldest,
    lag(n.ts) over (partition by t.block_id order by n.ts, n.oldest) as last_ts,
    lag(n.readable_at) over (partition by t.block_id order by n.ts, n.oldest) as last_readable_at
  from {touches} as t
  join {timed} as n on t.request_no = n.request_no
)
select
  *,
  coalesce(last_ts >= oldest, false) as is_near,
  coalesce(last_ts >= oldest and last_readable_at < ts, false) as is_read,
  coalesce(last_ts = ts or (last_ts >= oldest and last_readable_at >= ts), false) as is_open
from placed
