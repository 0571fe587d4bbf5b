-- What a lever did to the requests in its where, counted.
-- in:  the tried requests, priced: fate, now_pusd, read_tokens and write_tokens (as logged)
-- out: one row a (fate, feature, model); moved: changed and priced; no_price: the price tried does not exist
-- units: tokens; costs in pUSD as they are (now) and with the change where it was kept (then)
with counted as (
  select
    case when p.fate <> 'touched' then p.fate when p.is_priced then 'moved' else 'no_price' end as fate,
    p.feature,
    p.model,
    cast(count(*) as bigint) as requests,
    cast(coalesce(sum(p.read_tokens), 0) as bigint) as read_tokens,
    cast(coalesce(sum(p.write_tokens), 0) as bigint) as write_tokens,
    cast(coalesce(sum(p.cache_read_tokens), 0) as bigint) as kept_read_tokens,
    coalesce(sum(cast(p.now_pusd as decimal(38, 0))), 0) as now_pusd,
    {cost_sum} as tried_pusd
  from {priced} as p
  where p.fate is not null
  group by all
)
select
  fate,
  feature,
  model,
  requests,
  read_tokens,
  write_tokens,
  kept_read_tokens,
  now_pusd,
  case when fate = 'moved' then tried_pusd else now_pusd end as then_pusd
from counted
