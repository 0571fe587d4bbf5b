-- What a version of the requests costs, by day.
-- in:  its sums by day, owner and meter
-- out: one row a day, NULL for requests without a time; billed requests, those without a price, cost of the others
-- units: costs in pUSD
select
  p.day,
  cast(sum(p.billed_requests) as bigint) as billed_requests,
  cast(sum(p.unpriced_requests) as bigint) as unpriced_requests,
  {cost_sum} as cost_pusd
from {sums} as p
group by all
