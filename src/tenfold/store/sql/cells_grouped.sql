-- Requests summed to cells that priced.sql prices as one: alike in day, price key, context bucket, and in which counts
-- are known and above zero (the price status depends on those, and cost is linear inside such a cell).
-- in:  the cells (cells_requests.sql); masks and sums over all counts (store/cells.py); the context bucket is 1 above
--      the highest threshold below the total input, else 0
-- out: one row a cell and dimension
select
  day,
  is_dated,
  {dimensions}
  price_key,
  {context} as context_tokens,
  is_billed,
  is_overlap,
  {unknown_mask} as unknown_mask,
  {positive_mask} as positive_mask,
  cast(sum(requests) as bigint) as requests,
  cast(sum(split_unknown) as bigint) as split_unknown,
  {sums}
from {cells}
where {condition}
group by all
