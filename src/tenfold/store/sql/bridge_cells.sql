-- Priced cells made ready to be priced once more, by the list of another instant: what they cost at their own time
-- stands beside their counts.
-- in:  priced cells (see priced.sql); the dimensions; all counts (store/cells.py)
-- out: billed cells as priced.sql takes them, own_is_priced, and per meter own_<meter>_pusd
-- units: costs in pUSD, NULL where the cell had no price at its own time
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
  {counts},
  is_priced as own_is_priced,
  {own}
from {priced}
where is_billed and ({condition})
