-- Requests that a fleet serves and its card can price, by the stretch of time in which they start.
-- in:  fleet_timed; fleet_stretches(stretch, model_number, since_us, until_us, replicas): times in which a model's pools
--      stay the same
-- out: fleet_timed of those requests, and stretch
select s.stretch, timed.*
from fleet_timed as timed
join fleet_stretches as s
  on timed.model_number = s.model_number and timed.starts_us >= s.since_us and timed.starts_us < s.until_us
where timed.is_priced
