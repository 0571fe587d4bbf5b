-- When the log's requests were under way: all of them, of any provider and in any window.
-- in:  the requests table; fleet_keys(price_key, model_number): the self-hosted ones; fleet_calendar(day, day_number)
-- out: one row a request: starts_us (whole microseconds since 1970; NULL without a time), lasts_us (NULL where unknown),
--      is_odd (what it says of its duration is no time), is_hosted, and where it is from
select
  c.day_number * 86400000000 + extract(hour from r.ts) * 3600000000 + extract(minute from r.ts) * 60000000
    + cast(round(cast(substring(cast(r.ts as string), 18) as double) * 1000000) as bigint) as starts_us,
  -- a time that no call can take (30 years, not a number) is not known
  case when r.duration_ms >= 0 and r.duration_ms < 1000000000000
    then cast(round(r.duration_ms * 1000) as bigint) end as lasts_us,
  r.duration_ms is not null and not (r.duration_ms >= 0 and r.duration_ms < 1000000000000) as is_odd,
  fleet_keys.price_key is not null as is_hosted,
  r.request_id,
  r.source_file,
  r.source_line
from requests as r
left join fleet_keys on r.price_key = fleet_keys.price_key
left join fleet_calendar as c on cast(r.ts as date) = c.day
