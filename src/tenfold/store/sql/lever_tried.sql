-- A lever's change, laid in as if it held for every request that the lever was given.
-- in:  the changed requests: their columns, and new_<column> for what the lever changes
-- out: the same columns as changed, own_<column> as they were, own_pusd; what pricing needs beside
select
  {kept},
  {new},
  {own},
  c.cost_pusd as own_pusd,
  true as is_billable,
  false as gateway_cache_hit{absent}
from {changed} as c
