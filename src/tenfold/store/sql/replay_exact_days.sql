-- How a log is spread over days, and how long its answers take at most: how a replay of it is cut into slices.
-- in:  requests: ts, stored_at
-- out: one row a UTC day: requests, slowest (0: every answer was stored within 2 minutes, 1: an hour, 2: a day, 3: a month,
--      4: later; NULL: none is stored)
select
  cast(ts as date) as day,
  cast(count(*) as bigint) as requests,
  max(
    case
      when stored_at <= ts + interval '2' minute then 0
      when stored_at <= ts + interval '1' hour then 1
      when stored_at <= ts + interval '1' day then 2
      when stored_at <= ts + interval '30' day then 3
      when stored_at is not null then 4
    end
  ) as slowest
from {requests}
where ts is not null
group by cast(ts as date)
