-- Requests as a load generator replays them, in order of their starts.
-- in:  cells: the window's requests as cells
-- out: one row a request that reached an engine and has a time and both counts: ts, tokens, prefix_hashes and the size of
--      its blocks (tokens)
select ts, input_tokens, output_tokens, prefix_hashes, prefix_block_tokens
from {cells}
where ts is not null and input_tokens > 0 and output_tokens > 0 and not coalesce(gateway_cache_hit, false)
order by ts, source_file nulls last, source_line nulls last
