-- What each feature's requests cost by day, those held back from a change apart.
-- in:  the log's requests, priced
-- out: one row a (feature, day, is_held): priced requests, and what they cost; gateway hits cost nothing and count
-- units: pUSD
select
  p.feature,
  case when p.is_dated then p.day end as day,
  {held} as is_held,
  cast(count(*) as bigint) as requests,
  {cost} as cost_pusd
from priced_requests as p
where p.is_priced and (p.is_billed or coalesce(p.gateway_cache_hit, false))
group by 1, 2, 3
