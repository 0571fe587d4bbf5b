-- Requests that used a prompt cache, without it: the same input, none of it read, written or held in a cache. What was
-- billed stays beside it.
-- in:  priced: the window's requests priced; columns: columns of requests, the cached counts as 0; input_cost: cost of
--      the input side; premium: what writes cost beyond uncached input; storage: what holding a cache cost
-- out: one row a request that is priced and read, wrote or held a cache
-- units: costs in pUSD
select
  {columns},
  {input_cost} as billed_input_pusd,
  {premium} as premium_pusd,
  {storage} as storage_pusd
from {priced} as p
where p.price_status = 'priced'
  and (p.cache_read_tokens > 0 or p.cache_write_tokens > 0 or p.cache_storage_token_s > 0)
