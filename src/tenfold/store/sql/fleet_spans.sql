-- Time under way of a fleet's requests, cut to the stretches that it touches: one that goes on when pools change counts
-- in both.
-- in:  fleet_requests; fleet_lanes(stretch, model_number, since_us, until_us, replicas, is_placed): the stretches, and
--      whether their requests name their replica
-- out: one row a request and stretch: stretch, lane (the replica, empty where it is not named), room (replicas that a
--      lane stands for), starts_us, ends_us
select
  lanes.stretch,
  case when lanes.is_placed then coalesce(requests.replica, '') else '' end as lane,
  case when lanes.is_placed then 1 else lanes.replicas end as room,
  greatest(requests.starts_us, lanes.since_us) as starts_us,
  least(requests.starts_us + requests.lasts_us, lanes.until_us) as ends_us
from fleet_requests as requests
join fleet_lanes as lanes
  on requests.model_number = lanes.model_number
  and requests.starts_us < lanes.until_us
  and requests.starts_us + requests.lasts_us > lanes.since_us
where requests.lasts_us > 0
