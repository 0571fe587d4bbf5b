-- How much of each price key's traffic a lever's predicate names.
-- in:  lever_base; the predicate's mark
-- out: price_key, requests, named_requests
select
  price_key,
  cast(count(*) as bigint) as requests,
  cast(sum(case when {mark} then 1 else 0 end) as bigint) as named_requests
from lever_base
where is_billed
group by price_key
