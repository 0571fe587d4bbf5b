-- Requests that the p99 runbook can use, with what its change points are sought in, in order of arrival.
-- in:  the requests table
-- out: one row a request that was answered, with both latencies and its length: provider, model, ts; ttft (ms); tpot (ms,
--      mean time an output token after the first; NULL below 16 output tokens); output (tokens)
select
  coalesce(provider, '') as provider,
  coalesce(model, '') as model,
  ts,
  ttft_ms as ttft,
  case when output_tokens >= 16 then (duration_ms - ttft_ms) / (output_tokens - 1) end as tpot,
  output_tokens as output
from {requests}
where {condition}
  and ts is not null
  and not coalesce(gateway_cache_hit, false)
  and coalesce(status in ('success', 'incomplete'), coalesce(http_status < 400, true))
  and (ttft_ms = 0 or ttft_ms >= 1e-6) and ttft_ms <= duration_ms
  -- a time that no call can take (30 years, a part of a nanosecond, not a number) is not known
  and duration_ms >= 1e-6 and duration_ms < 1000000000000
  and output_tokens is not null
  -- answered in one piece: nothing is known of the first token
  and not (ttft_ms = duration_ms and output_tokens > 1)
