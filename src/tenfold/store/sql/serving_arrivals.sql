-- Requests that reached a model, for the simulator of self-hosted serving.
-- in:  the requests table; answers from a gateway's cache reached none and are left out
-- out: one row a request, ordered by start: ts, model, input_tokens, output_tokens, prefix_hashes (cumulative, one a
--      block) and prefix_block_tokens; NULL is unknown
select
  ts,
  model,
  input_tokens,
  output_tokens,
  prefix_hashes,
  prefix_block_tokens
from requests
where not coalesce(gateway_cache_hit, false)
order by ts nulls last, source_line nulls last
