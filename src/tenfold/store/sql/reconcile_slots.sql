-- What requests cost by half hour: any day of an invoice, in whatever zone it was cut, is a sum of half hours.
-- in:  the priced view of reconcile_requests.sql; per meter in use the sums that analysis/reconcile/logged.py writes
-- out: one row a half hour, price key, billing, stream and state (priced, missing: no usage, unpriced:
--      usage without a price); units, cost in pUSD, sums of squares and largest of both
select
  day,
  hour(priced_at) * 2 + case when minute(priced_at) >= 30 then 1 else 0 end as half_hour,
  price_key,
  billing,
  coalesce(is_stream, true) as is_stream,
  case
    when is_priced then 'priced'
    when price_status in ('usage_missing', 'usage_partial') then 'missing'
    else 'unpriced'
  end as state,
  cast(sum(requests) as bigint) as requests,
  {sums}
from {priced}
where is_dated
group by all
