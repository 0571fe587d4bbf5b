-- What shorter prompts and answers would remove, by the class it was billed in, and what each class is worth.
-- in:  the touched requests edited on the log as it is; lever_log_priced (their rates); lever_log (later turns)
-- out: one row: requests changed and their cost, tokens removed and their worth by class, the same input at the uncached
--      rate, answers that ended at their limit, answers that are input again later, cached tokens that stay
-- units: tokens; costs in pUSD
with starts as (
  select session_id, ts, count(*) as turns
  from lever_log
  where session_id is not null and ts is not null
    and coalesce(is_billable, true) and not coalesce(gateway_cache_hit, false)
  group by session_id, ts
),
later as (
  select
    session_id,
    ts,
    sum(turns) over (partition by session_id)
      - sum(turns) over (partition by session_id order by ts rows between unbounded preceding and current row) as turns_left
  from starts
),
removed as (
  select
    e.rid,
    e.cost_pusd,
    e.trim_is_truncated,
    e.output_tokens,
    e.input_tokens - e.new_input_tokens as input,
    coalesce(e.cache_read_tokens - e.new_cache_read_tokens, 0) as reads,
    coalesce(e.cache_write_tokens - e.new_cache_write_tokens, 0) as writes,
    coalesce(e.cache_write_long_tokens - e.new_cache_write_long_tokens, 0) as longs,
    e.output_tokens - e.new_output_tokens as output,
    coalesce(e.reasoning_tokens - e.new_reasoning_tokens, 0) as reasoning,
    coalesce(e.new_cache_read_tokens, 0) as reads_left
  from {edited} as e
),
rated as (
  select
    r.*,
    r.input - r.reads - r.writes as uncached,
    r.writes - r.longs as shorts,
    r.input <> 0 or r.output <> 0 as is_changed,
    case when r.reads <> 0 then r.reads_left else 0 end as kept_reads,
    coalesce(l.turns_left, 0) as turns_left,
    coalesce(p.rate_uncached_input, 0) as uncached_rate,
    coalesce(p.rate_cache_read, 0) as read_rate,
    coalesce(p.rate_cache_write, 0) as write_rate,
    coalesce(p.rate_cache_write_long, 0) as long_rate,
    coalesce(p.rate_output, 0) as output_rate,
    {reasoning_rate} as reasoning_rate,
    coalesce(p.rate_cache_read, p.rate_uncached_input, 0) as again_rate,
    coalesce(p.rate_cache_write, p.rate_uncached_input, 0) as rewrite_rate
  from removed as r
  join lever_log_priced as p on r.rid = p.rid
  left join later as l on p.session_id = l.session_id and p.ts = l.ts
)
select
  cast(coalesce(sum(case when is_changed then 1 else 0 end), 0) as bigint) as changed,
  coalesce(sum(case when is_changed then cast(cost_pusd as decimal(38, 0)) else 0 end), 0) as changed_pusd,
  cast(coalesce(sum(uncached), 0) as bigint) as uncached,
  cast(coalesce(sum(reads), 0) as bigint) as reads,
  cast(coalesce(sum(shorts), 0) as bigint) as shorts,
  cast(coalesce(sum(longs), 0) as bigint) as longs,
  cast(coalesce(sum(output), 0) as bigint) as output,
  coalesce(sum(cast(uncached * uncached_rate as decimal(38, 0))), 0) as uncached_pusd,
  coalesce(sum(cast(reads * read_rate as decimal(38, 0))), 0) as reads_pusd,
  coalesce(sum(cast(shorts * write_rate as decimal(38, 0))), 0) as shorts_pusd,
  coalesce(sum(cast(longs * long_rate as decimal(38, 0))), 0) as longs_pusd,
  coalesce(sum(cast((output - reasoning) * output_rate + reasoning * reasoning_rate as decimal(38, 0))), 0) as output_pusd,
  coalesce(sum(cast(input * uncached_rate as decimal(38, 0))), 0) as list_pusd,
  cast(coalesce(sum(case when trim_is_truncated then 1 else 0 end), 0) as bigint) as truncated,
  coalesce(sum(case when trim_is_truncated then cast(cost_pusd as decimal(38, 0)) else 0 end), 0) as truncated_pusd,
  cast(coalesce(sum(output * turns_left), 0) as bigint) as again,
  coalesce(sum(cast(output * turns_left * again_rate as decimal(38, 0))), 0) as again_pusd,
  cast(coalesce(sum(case when kept_reads > 0 then 1 else 0 end), 0) as bigint) as cached_requests,
  cast(coalesce(sum(kept_reads), 0) as bigint) as kept_reads,
  cast(coalesce(sum(case when kept_reads > 0 then reads else 0 end), 0) as bigint) as cached_removed,
  coalesce(sum(cast(kept_reads * uncached_rate as decimal(38, 0))), 0) as kept_uncached_pusd,
  coalesce(sum(cast(kept_reads * read_rate as decimal(38, 0))), 0) as kept_read_pusd,
  coalesce(sum(cast(kept_reads * rewrite_rate as decimal(38, 0))), 0) as kept_rewrite_pusd
from rated
