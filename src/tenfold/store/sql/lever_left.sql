-- What a set of levers leaves of the bill, by owner and meter.
-- in:  the versions of the requests that the set leaves, priced; lever_base
-- out: one row a (feature, team, model as logged), costs in pUSD, NULL where nothing has a price
select
  b.feature,
  b.team,
  b.model,
  {meter_sums}
from {priced} as p
join lever_base as b on p.rid = b.rid
group by b.feature, b.team, b.model
