-- What a version of the requests costs, by owner and meter.
-- in:  its sums by day, owner and meter
-- out: one row a (feature, team, model), costs in pUSD, NULL where nothing has a price
select
  p.feature,
  p.team,
  p.model,
  {meter_sums}
from {sums} as p
group by all
