-- How long replicas had something to do.
-- in:  levels by lane (see fleet_levels.sql)
-- out: one row a stretch: busy_us (replica-microseconds with at least one request: in a lane of several replicas, as many
--      as have one each), under_way_us (request-microseconds)
select
  stretch,
  cast(sum(least(under_way, room) * lasts_us) as bigint) as busy_us,
  cast(sum(under_way * lasts_us) as bigint) as under_way_us
from {levels}
group by stretch
