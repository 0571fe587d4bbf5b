-- Output of self-hosted models by place and minute, and the part of it that may wait.
-- in:  lever_base; the places: place, price_key, since, until (of the stretch); the condition under which a request may wait
-- out: place, minute (naive UTC), output_tokens, waiting_tokens; a request counts in the minute in which it starts
select
  p.place,
  cast(date_trunc('minute', b.ts) as timestamp) as minute,
  cast(sum(b.output_tokens) as bigint) as output_tokens,
  cast(coalesce(sum(case when {waits} then b.output_tokens end), 0) as bigint) as waiting_tokens
from lever_base as b
join {places} as p on b.price_key = p.price_key and b.ts >= p.since and b.ts < p.until
where b.is_billed and b.cost_pusd is not null
group by p.place, cast(date_trunc('minute', b.ts) as timestamp)
