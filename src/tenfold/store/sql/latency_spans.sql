-- Requests that the p99 runbook can use, by model and span of time; spans may overlap.
-- in:  latency_usable; latency_span(span, since, until)
-- out: one row a span and model with any
select s.span, u.provider, u.model, cast(count(*) as bigint) as requests
from latency_usable as u
join latency_span as s on u.ts >= s.since and u.ts < s.until
group by s.span, u.provider, u.model
