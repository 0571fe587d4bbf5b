-- The requests as sets of the levers before a replay leave them: one world a set, of those that touch its group at all.
-- in:  the versions of the requests; the worlds of each group of requests that the replay keeps together: replay_group,
--      combo (the set, as bits), world (bits of the levers that touch any of the group)
-- out: the versions that make up each world, its set in combo
select
  {columns},
  w.combo,
  w.world
from {versions} as v
join {worlds} as w on v.{group} = w.replay_group
where v.levers = (w.combo & v.touch) and (w.combo & v.touch & {removed}) = 0
