-- Requests of a window as the p99 runbook reads them, in order of arrival, model by model unless all are taken together. What a gateway's cache
-- answered never reached a model and is left out.
-- in:  the requests table
-- out: one row a request; milliseconds, tokens; is_asked: the latencies looked at are those of such requests; is_answered: an answer came (without a status: no HTTP error); prompt:
--      equal ones had the same prompt and parameters
select
  coalesce(provider, '') as provider,
  coalesce(model, '') as model,
  ts,
  coalesce({where}, false) as is_asked,
  coalesce(status in ('success', 'incomplete'), coalesce(http_status < 400, true)) as is_answered,
  -- a time that no call can take (30 years, a part of a nanosecond, not a number) is not known
  case when (ttft_ms = 0 or ttft_ms >= 1e-6) and ttft_ms < 1000000000000 then ttft_ms end as ttft_ms,
  case when duration_ms >= 1e-6 and duration_ms < 1000000000000 then duration_ms end as duration_ms,
  case when (queue_ms = 0 or queue_ms >= 1e-6) and queue_ms < 1000000000000 then queue_ms end as queue_ms,
  cast(input_tokens as double) as input_tokens,
  cast(output_tokens as double) as output_tokens,
  cast(cache_read_tokens as double) as cache_read_tokens,
  cast(reasoning_tokens as double) as reasoning_tokens,
  cast(preemptions as double) as preemptions,
  cast(running as double) as running,
  cast(waiting as double) as waiting,
  kv_usage_ratio,
  cast(attempt as double) as attempt,
  is_structured,
  team,
  project,
  org,
  user_id,
  api_key_id,
  feature,
  client,
  replica,
  deployment,
  model_revision,
  case when prompt_hash is not null
    then substring(md5(concat(prompt_hash, '|', coalesce(params_hash, ''))), 1, 16) end as prompt_hash,
  session_id,
  case when status = 'success' then 'ok' else status end as status,
  region
from {requests}
where {condition} and not coalesce(gateway_cache_hit, false)
order by {models}ts nulls last, source_file nulls last, source_line nulls last
