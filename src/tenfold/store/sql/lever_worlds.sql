-- The requests as each set of the levers before a replay leaves them: one world a set.
-- in:  the versions of the requests; combos(combo): the sets, as bits
-- out: the versions that make up each world, its set in combo
select
  {columns},
  w.combo
from {versions} as v
cross join combos as w
where v.levers = (w.combo & v.touch) and (w.combo & v.touch & {removed}) = 0
