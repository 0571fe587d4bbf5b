-- How many leading blocks the two prompts of a pair have in common, where less was read than the one before left.
-- Hashes are cumulative: those that both have are the leading ones.
-- in:  cache_breaks_pairs, requests
-- out: rid, common_blocks
-- units: blocks
select
  p.rid,
  max(cardinality(array_intersect(new.prefix_hashes, old.prefix_hashes))) as common_blocks
from cache_breaks_pairs as p
join requests as new
  on coalesce(p.load_id, -1) = coalesce(new.load_id, -1)
  and coalesce(p.source_line, -1) = coalesce(new.source_line, -1)
  and coalesce(p.dedup_key, '') = coalesce(new.dedup_key, '')
join requests as old
  on coalesce(p.pair_load_id, -1) = coalesce(old.load_id, -1)
  and coalesce(p.pair_source_line, -1) = coalesce(old.source_line, -1)
  and coalesce(p.pair_dedup_key, '') = coalesce(old.dedup_key, '')
where p.blocks > 0
  and p.ref_blocks > 0
  and least(p.ref_cached, p.input_tokens) - p.cache_read_tokens >= {slack}
group by p.rid
