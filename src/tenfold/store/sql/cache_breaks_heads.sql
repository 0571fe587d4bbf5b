-- Beginnings of prompts by feature: how many requests that start something (no turn of the session before them) begin
-- with a first block of their own.
-- in:  cache_breaks_turns
-- out: one row per (provider, model, feature) with hashes: starts above the model's minimum, distinct first blocks
select
  provider,
  model,
  feature,
  cast(count(*) as bigint) as starts,
  cast(count(distinct first_block) as bigint) as heads,
  cast(sum(input_tokens) as bigint) as input_tokens
from cache_breaks_turns
where first_block is not null
  and input_tokens >= min_tokens
  and (session_id is null or s_ts is null)
group by provider, model, feature
