-- What a version of the requests costs, by day.
-- in:  the requests, priced; the day as the report zone cuts it
-- out: one row a day, NULL for requests without a time; billed requests, those without a price, cost of the others
-- units: costs in pUSD
select
  case when is_dated then {day} end as day,
  cast(sum(case when is_billed then 1 else 0 end) as bigint) as billed_requests,
  cast(sum(case when is_billed and not is_priced then 1 else 0 end) as bigint) as unpriced_requests,
  {cost_sum} as cost_pusd
from {priced} as p
group by all
