-- How the requests of the window were judged, and the gaps between turns, weighed by the prefix that was at stake.
-- in:  the judged requests, priced
-- out: one row per (provider, model, feature, cause, gap)
-- units: tokens
select
  provider,
  model,
  feature,
  cause,
  gap,
  cast(count(*) as bigint) as turns,
  cast(sum(input_tokens) as bigint) as input_tokens,
  cast(sum(prefix_tokens) as bigint) as prefix_tokens,
  cast(sum(cache_write_tokens) as bigint) as write_tokens,
  cast(sum(lost_tokens) as bigint) as lost_tokens,
  cast(sum(case when is_eligible then 1 else 0 end) as bigint) as eligible_turns,
  cast(sum(case when is_eligible and cache_read_tokens = 0 then 1 else 0 end) as bigint) as missed_turns
from {priced} as p
group by provider, model, feature, cause, gap
order by provider nulls last, model nulls last, feature nulls last, cause nulls last, gap nulls last
