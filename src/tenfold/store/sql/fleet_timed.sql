-- Self-hosted requests with their time under way, in whole microseconds since 1970.
-- in:  the window's requests, priced; fleet_keys(price_key, model_number); fleet_calendar(day, day_number)
-- out: one row a billed request with a time: model_number (-1: on no pool), is_priced, replica (NULL where unknown),
--      starts_us, lasts_us (NULL where unknown), and tokens: computed of the prompt (writes to a cache too), cached, of
--      the answer
select
  fleet_keys.model_number,
  p.price_key,
  p.is_priced,
  p.replica,
  c.day_number * 86400000000 + extract(hour from p.ts) * 3600000000 + extract(minute from p.ts) * 60000000
    + cast(round(cast(substring(cast(p.ts as string), 18) as double) * 1000000) as bigint) as starts_us,
  -- a time that no call can take (30 years, not a number) is not known
  case when p.duration_ms >= 0 and p.duration_ms < 1000000000000
    then cast(round(p.duration_ms * 1000) as bigint) end as lasts_us,
  p.uncached_input_units + p.cache_write_units + p.cache_write_long_units as uncached_tokens,
  p.cache_read_units as cached_tokens,
  p.output_units as output_tokens
from priced_requests as p
join fleet_keys on p.price_key = fleet_keys.price_key
join fleet_calendar as c on p.day = c.day
where p.is_billed and p.is_dated
