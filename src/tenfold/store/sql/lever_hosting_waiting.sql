-- Output that may wait, by place and hour.
-- in:  lever_base; the mark of requests that may wait; the places: place, price_key, since, until (of the stretch)
-- out: place, hour (naive UTC), output_tokens
select
  p.place,
  date_trunc('hour', b.ts) as hour,
  cast(sum(b.output_tokens) as bigint) as output_tokens
from lever_base as b
join {places} as p on b.price_key = p.price_key and b.ts >= p.since and b.ts < p.until
where b.is_billed and b.cost_pusd is not null and b.{mark}
group by p.place, date_trunc('hour', b.ts)
