-- Requests that matter to an exact response cache without a limit on its entries: those that another request of the
-- same key is near enough to, in time, for one to get the other's answer. (A limit that binds keeps all that have a key.)
-- in:  requests: rid, cache_key, ts, stored_at; is_near: which of them to keep
-- out: the same rows, in the order in which the replay walks them
with placed as (
  select
    rid,
    cache_key,
    ts,
    stored_at,
    max(stored_at) over (
      partition by cache_key order by ts, rid rows between unbounded preceding and 1 preceding
    ) as last_stored_at,
    lead(ts) over (partition by cache_key order by ts, rid) as next_ts
  from {requests}
  where cache_key is not null and ts is not null
)
select rid, cache_key, ts, stored_at
from placed
where {is_near}
order by ts, rid
