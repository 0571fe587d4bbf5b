-- What prompt caches returned, by month and dimensions.
-- in:  priced: efficiency_uncached.sql priced; keys; month, input_cost: SQL over the priced request
-- out: one row a month (NULL without a time) and group; a request that has no price without its cache is counted apart
--      and in no amount
-- units: costs of the input side in pUSD
with compared as (
  select
    {month} as month,
    {dimensions}
    p.is_priced,
    cast({input_cost} as decimal(38, 0)) as uncached_pusd,
    cast(p.billed_input_pusd as decimal(38, 0)) as billed_pusd,
    cast(p.premium_pusd as decimal(38, 0)) as premium_pusd,
    cast(p.storage_pusd as decimal(38, 0)) as storage_pusd
  from {priced} as p
  join keys as k on p.price_key = k.price_key
)
select
  month,
  {names}
  cast(count(*) as bigint) as cached_requests,
  cast(sum(case when is_priced then 0 else 1 end) as bigint) as cached_unpriced,
  coalesce(sum(case when is_priced then billed_pusd end), 0) as cached_billed_pusd,
  coalesce(sum(case when is_priced then uncached_pusd end), 0) as cached_uncached_pusd,
  coalesce(sum(case when is_priced then premium_pusd end), 0) as cached_premium_pusd,
  coalesce(sum(case when is_priced then storage_pusd end), 0) as cached_storage_pusd
from compared
group by all
