-- Requests summed to cells that priced.sql prices as one: alike in day, price key, context bucket, and in which counts
-- are known and above zero, as far as the price status may depend on it (cost is linear inside such a cell).
-- in:  the cells (cells_requests.sql, cells_cube.sql); kind, one number for all that a cell is alike in, and what it
--      holds (store/cells.py); the context bucket is 1 above the highest threshold below the total input, else 0
-- out: one row a cell and dimension, to be priced at the start of its day
with summed as (
  select
    day,
    {dimensions}
    price_key,
    {kind} as kind,
    cast(sum(requests) as bigint) as requests,
    cast(sum(split_unknown) as bigint) as split_unknown,
    {sums}
  from {cells}
  where {condition}
  group by all
  having sum(requests) <> 0
)
select
  day,
  cast(day as timestamp) as priced_at,
  {is_dated} as is_dated,
  {names}
  price_key,
  {context} as context_tokens,
  {is_billed} as is_billed,
  {is_overlap} as is_overlap,
  {unknown_mask} as unknown_mask,
  {positive_mask} as positive_mask,
  requests,
  split_unknown,
  {counts}
from summed
