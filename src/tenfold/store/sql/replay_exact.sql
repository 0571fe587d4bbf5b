-- Requests of a slice of a log that an exact response cache may treat alike: those that share the hash of their key with
-- another one of the slice. (Where a limit on entries binds, all are kept.)
-- in:  requests: rid, key_hash, key_check (equal together where the key is), ts, stored_at; the slice of time, with what
--      reaches into it; the part of the keys; which of them to keep
-- out: the same rows, in no order
with sliced as (
  select rid, key_hash, key_check, ts, stored_at
  from {requests}
  where {slice}
),
counted as (
  select
    *,
    count(*) over (partition by key_hash) as alike
  from sliced
  where {part}
)
select rid, key_hash, key_check, ts, stored_at
from counted
where {kept}
