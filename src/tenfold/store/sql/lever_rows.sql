-- Every billed request of which levers want something, with what they want, as the first of its versions: none pulled.
-- in:  lever_base; per lever what it judged, joined by rid
-- out: one row a request that a lever changes or charges for: reach and touch (bits of the levers that change it: any, and those that sets are made of),
--      levers and combo (bits pulled: none), world (of a replay: none), counts, cost, each lever's fee and knobs
-- units: tokens; costs and fees in pUSD
with joined as (
  select
    b.rid,
    b.call_id,
    b.block_day,
    b.user_bucket,
    b.ts,
    b.price_key,
    {counts},
    b.cost_pusd,
    {reach} as reach{knobs}
  from lever_base as b
  {joins}
  where b.is_billed
)
select
  rid,
  call_id,
  block_day,
  user_bucket,
  ts,
  price_key,
  {own_counts},
  cost_pusd,
  cast(null as bigint) as set_pusd,
  true as is_kept,
  reach,
  {touch} as touch,
  0 as levers,
  0 as combo,
  -1 as world{own_knobs}
from joined
where {wanted}
