-- Priced cells summed to what one charge of a FOCUS export is about, before it is cut into meters: a stretch of time with
-- one price list of your own and one of the provider, owners, price key and context band.
-- in:  focus_cells priced by your own prices ({own}) and by the list ({listed}), focus_own_days and focus_list_days (price
--      key, day, entry and the stretch it holds for); what export/focus_lines.py writes for the meters
-- out: one row a group: its stretch, requests, reasoning tokens, and per meter what it counts, both rates and sums in pUSD
-- units: those of the meters; rates in pUSD a unit
with paired as (
  select
    p.*,
    q.is_priced as has_list,
    p.entry_id as own_entry,
    case when q.is_priced then q.entry_id end as list_entry,
    {from_list},
    {bucket} as bucket_start,
    {bucket_end} as bucket_end,
    o.valid_from as own_from,
    o.valid_to as own_to,
    coalesce(l.valid_from, o.valid_from) as list_from,
    coalesce(l.valid_to, o.valid_to) as list_to
  from {own} as p
  join {listed} as q on p.cell_id = q.cell_id
  join focus_own_days as o
    on p.price_key = o.price_key and p.day = o.day and p.entry_id = o.entry_id
    and p.priced_at >= o.valid_from and p.priced_at < o.valid_to
  left join focus_list_days as l
    on q.price_key = l.price_key and q.day = l.day and q.entry_id = l.entry_id
    and q.priced_at >= l.valid_from and q.priced_at < l.valid_to
  where p.is_billed and p.is_priced
),
grouped as (
  select
    greatest(bucket_start, own_from, list_from) as period_start,
    least(bucket_end, own_to, list_to) as period_end,
    {dimensions}
    price_key,
    own_entry,
    list_entry,
    has_list,
    cast(sum(requests) as bigint) as requests,
    cast(sum(coalesce(reasoning_tokens, 0)) as bigint) as reasoning_tokens,
    {sums}
  from paired
  group by all
),
counted as (
  select
    *,
    {quantities}
  from grouped
)
select
  *,
  {carrier} as carrier
from counted
