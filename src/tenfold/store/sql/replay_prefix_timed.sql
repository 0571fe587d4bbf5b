-- When each numbered request begins, when its entries can be read, and what is forgotten by then.
-- in:  requests: rid, combo, ts, readable_at, lifetime_us; the same, numbered
-- out: one row a numbered request: ts, readable_at (not before ts), oldest (a touch before it is forgotten at ts)
select
  n.request_no,
  r.ts,
  greatest(coalesce(r.readable_at, r.ts), r.ts) as readable_at,
  r.ts
    - interval '1' second * cast((r.lifetime_us - r.lifetime_us % 1000000) / 1000000 as int)
    - interval '0.000001' second * cast(r.lifetime_us % 1000000 as int) as oldest
from {requests} as r
join {numbered} as n on r.combo = n.combo and r.rid = n.rid
