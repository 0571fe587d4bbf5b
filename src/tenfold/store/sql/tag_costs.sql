-- What requests cost by the value of one tag, such as the customer they were made for.
-- in:  priced: the window's requests priced, with tags; key: the tag, a literal; cost: SQL over the priced request
-- out: one row a value (NULL: requests without the tag): billed requests, those of them without a price, and their cost
-- units: pUSD
select
  p.tags[{key}] as value,
  cast(count(*) as bigint) as requests,
  cast(coalesce(sum(case when p.is_priced then 0 else 1 end), 0) as bigint) as unpriced_requests,
  coalesce(sum(cast({cost} as decimal(38, 0))), 0) as cost_pusd
from {priced} as p
where p.is_billed
group by 1
