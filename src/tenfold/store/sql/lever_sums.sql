-- What a version of the requests costs, by day, owner and meter: priced once, read by day and by owner.
-- in:  the requests, priced; the day as the report zone cuts it
-- out: one row a (day, feature, team, model), day NULL for requests without a time; billed requests, those without a
--      price, costs by meter, NULL where nothing has a price
-- units: costs in pUSD
select
  case when is_dated then {day} end as day,
  p.feature,
  p.team,
  p.model,
  cast(sum(case when p.is_billed then 1 else 0 end) as bigint) as billed_requests,
  cast(sum(case when p.is_billed and not p.is_priced then 1 else 0 end) as bigint) as unpriced_requests,
  {meter_sums}
from {priced} as p
group by all
