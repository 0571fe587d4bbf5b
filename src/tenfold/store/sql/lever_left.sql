-- What a version of the requests costs, by owner and meter.
-- in:  the requests, priced
-- out: one row a (feature, team, model), costs in pUSD, NULL where nothing has a price
select
  feature,
  team,
  model,
  {meter_sums}
from {priced}
group by all
