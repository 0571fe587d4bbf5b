-- What a replay of prompt caches needs of a request and is too wide to be carried along.
-- in:  the requests table; what numbers its rows
-- out: rid, who shares its cache, how many prefix blocks it has, when its first token came (after the start)
select
  {row_id} as rid,
  org,
  project,
  session_id,
  greatest(coalesce(cardinality(prefix_hashes), 0), 0) as prefix_blocks,
  prefix_block_tokens,
  -- a time that no call can take (30 years, not a number) is not known
  cast(round(case when coalesce(ttft_ms, duration_ms) >= 0 and coalesce(ttft_ms, duration_ms) < 1000000000000
    then coalesce(ttft_ms, duration_ms) else 0 end * 1000) as bigint) as first_token_us
from requests
