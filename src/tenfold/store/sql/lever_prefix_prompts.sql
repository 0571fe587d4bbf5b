-- What a replay of prompt caches needs of a request and is too wide to be carried along.
-- in:  the requests table; what numbers its rows
-- out: rid, who shares its cache, its prefix blocks, when its first token came (after the start)
select
  {row_id} as rid,
  org,
  project,
  session_id,
  prefix_hashes,
  prefix_block_tokens,
  cast(round(coalesce(ttft_ms, duration_ms, 0) * 1000) as bigint) as first_token_us
from requests
