-- Cells where a day has one price list, and single requests for the (price key, day) pairs whose rates change inside it.
-- in:  {grouped} (cells_grouped.sql), {cells} (cells_requests.sql), cut_days(price_key, day)
-- out: the cells that priced.sql needs, with their dimensions
select
  day,
  priced_at,
  is_dated,
  {names}
  price_key,
  context_tokens,
  is_billed,
  is_overlap,
  requests,
  split_unknown,
  {counts}
from {grouped} as g
where not exists (select 1 from cut_days where cut_days.price_key = g.price_key and cut_days.day = g.day)
union all
select
  day,
  priced_at,
  is_dated,
  {dimensions}
  price_key,
  context_tokens,
  is_billed,
  is_overlap,
  requests,
  split_unknown,
  {counts}
from {cells} as r
where ({condition})
  and exists (select 1 from cut_days where cut_days.price_key = r.price_key and cut_days.day = r.day)
