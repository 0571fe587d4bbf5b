-- A lever's change, kept where the request has a price before and after it; every other request stays as it was.
-- in:  the tried requests, priced: the changed columns, own_<column> and own_pusd as they were; the lever's bit
-- out: one row a version of a request: its columns, levers with the bit, is_kept, cost
-- units: cost in pUSD; a cost that is set (a measured one) is not priced again
with judged as (
  select
    *,
    {cost} as new_pusd,
    own_set_pusd is null and own_pusd is not null and (set_pusd is not null or is_priced) as is_changed
  from {priced}
)
select
  {kept},
  {chosen},
  case
    when not is_changed then own_pusd
    when set_pusd is not null then set_pusd
    else {settled}
  end as cost_pusd,
  is_changed as is_kept,
  combo + {bit} as levers,
  combo + {bit} as combo
from judged
