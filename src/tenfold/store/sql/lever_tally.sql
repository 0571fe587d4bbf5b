-- What a lever did to the requests in its where, counted.
-- in:  the tried requests, priced: fate, now_pusd, read_tokens and write_tokens (as logged)
-- out: one row a (fate, feature, model); moved: changed and priced; no_price: the price tried does not exist
-- units: tokens; costs in pUSD, after the change where it was kept, else unchanged
with fated as (
  select
    case when fate <> 'touched' then fate when is_priced then 'moved' else 'no_price' end as fate,
    p.feature,
    p.model,
    p.read_tokens,
    p.write_tokens,
    p.cache_read_tokens,
    p.now_pusd,
    case when p.fate = 'touched' and p.is_priced then {cost} else p.now_pusd end as then_pusd
  from {priced} as p
  where p.fate is not null
)
select
  fate,
  feature,
  model,
  cast(count(*) as bigint) as requests,
  cast(coalesce(sum(read_tokens), 0) as bigint) as read_tokens,
  cast(coalesce(sum(write_tokens), 0) as bigint) as write_tokens,
  cast(coalesce(sum(cache_read_tokens), 0) as bigint) as kept_read_tokens,
  coalesce(sum(cast(now_pusd as decimal(38, 0))), 0) as now_pusd,
  coalesce(sum(cast(then_pusd as decimal(38, 0))), 0) as then_pusd
from fated
group by all
