-- Requests under way over time: a sweep over starts (+1) and ends (-1) in each lane, cut at full hours. All changes of
-- one instant count together, so a request that ends when another starts does not overlap it.
-- in:  spans (see fleet_spans.sql); fleet_hours(stretch, hour_us, begins_us, ends_us): hours of each stretch, cut to it;
--      the expression that is the lane
-- out: one row a stretch, lane and piece of time in which nothing changes: hour_us, room, lasts_us, under_way
with lanes as (
  select distinct stretch, {lane} as lane, room from {spans}
),
changes as (
  select stretch, {lane} as lane, starts_us as at_us, cast(1 as bigint) as change from {spans}
  union all
  select stretch, {lane} as lane, ends_us as at_us, cast(-1 as bigint) as change from {spans}
  union all
  select hours.stretch, lanes.lane, hours.begins_us as at_us, cast(0 as bigint) as change
  from fleet_hours as hours
  join lanes on hours.stretch = lanes.stretch
  union all
  select hours.stretch, lanes.lane, hours.ends_us as at_us, cast(0 as bigint) as change
  from fleet_hours as hours
  join lanes on hours.stretch = lanes.stretch
),
instants as (
  select stretch, lane, at_us, sum(change) as change
  from changes
  group by stretch, lane, at_us
),
levels as (
  select
    stretch,
    lane,
    at_us,
    sum(change) over (partition by stretch, lane order by at_us) as under_way,
    lead(at_us) over (partition by stretch, lane order by at_us) - at_us as lasts_us
  from instants
)
select
  levels.stretch,
  levels.lane,
  levels.at_us - levels.at_us % 3600000000 as hour_us,
  lanes.room,
  levels.lasts_us,
  levels.under_way
from levels
join lanes on levels.stretch = lanes.stretch and levels.lane = lanes.lane
where levels.lasts_us is not null
