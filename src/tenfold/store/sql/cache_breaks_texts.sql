-- The prompts on both sides of a break, dearest breaks first.
-- in:  the changed requests, priced; texts
-- out: one row a break of which both prompts were kept
-- units: saved_pusd in pUSD
select
  p.provider,
  p.model,
  p.feature,
  p.cause,
  p.broken_at,
  p.lost_tokens,
  case when p.was_priced and p.price_status = 'priced' then cast(p.now_pusd - ({cost}) as decimal(38, 0)) end
    as saved_pusd,
  old.prompt as before_prompt,
  new.prompt as after_prompt
from {priced} as p
join texts as new
  on p.load_id = new.load_id and p.source_line = new.source_line
  and coalesce(p.dedup_key, '') = coalesce(new.dedup_key, '')
join texts as old
  on p.ref_load_id = old.load_id and p.ref_source_line = old.source_line
  and coalesce(p.ref_dedup_key, '') = coalesce(old.dedup_key, '')
where p.change = 'hit'
  and p.cause in ('prefix_broken', 'rewritten', 'unexplained', 'volatile_head')
  and new.prompt is not null
  and old.prompt is not null
order by
  saved_pusd desc nulls last, p.ts, p.load_id nulls last, p.source_line nulls last, p.dedup_key nulls last
limit {at_most}
