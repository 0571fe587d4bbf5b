-- Each billed request beside the ones before it that may have left its beginning in the cache: the turn before of the
-- same session and model (s_), the turn before of the session by another model (a_), the last request of the pool with
-- the same first blocks (h_), the last one of the same feature (f_); and the ones after it that may have read it.
-- in:  requests, keys, cache_rule_times(price_key, valid_from, valid_to, the rule)
-- out: one row a billed request with a time, numbered (rid); cached_tokens: what of it the cache holds after it;
--      held_s: for how long
-- units: tokens, seconds
with billed as (
  select
    {columns},
    k.provider,
    k.model,
    c.control,
    c.min_tokens,
    c.increment_tokens,
    c.lifetime_s,
    c.long_lifetime_s,
    coalesce(r.org, '') as pool_org,
    case when c.by_project then coalesce(r.project, '') else '' end as pool_project,
    case when c.by_region then coalesce(r.region, '') else '' end as pool_region,
    case when r.session_id is null then r.load_id end as alone_load,
    case when r.session_id is null then r.source_line end as alone_line,
    r.prefix_block_tokens,
    greatest(coalesce(cardinality(r.prefix_hashes), 0), 0) as blocks,
    nullif(split_part(concat_ws(',', r.prefix_hashes), ',', 1), '') as first_block,
    case
      when cardinality(r.prefix_hashes) >= ceil(c.min_tokens / r.prefix_block_tokens) then
        split_part(concat_ws(',', r.prefix_hashes), ',',
          cast(greatest(ceil(c.min_tokens / r.prefix_block_tokens), 1) as int))
    end as head_key,
    -- a time that no call can take (30 years, not a number) is not known
    r.ts + interval '1' second * (case when coalesce(r.ttft_ms, r.duration_ms) >= 0
      and coalesce(r.ttft_ms, r.duration_ms) < 1000000000000 then coalesce(r.ttft_ms, r.duration_ms) else 0 end / 1000)
      as ready_at,
    case
      when c.control = 'automatic' or r.cache_write_tokens is null then coalesce(r.input_tokens, 0)
      else coalesce(r.cache_read_tokens, 0) + r.cache_write_tokens
    end as cached_tokens,
    case when 2 * coalesce(r.cache_write_long_tokens, 0) >= r.cache_write_tokens then 1 else 0 end as is_long_write
  from requests as r
  join keys as k on r.price_key = k.price_key
  left join cache_rule_times as c
    on r.price_key = c.price_key
    and r.ts >= c.valid_from
    and r.ts < c.valid_to
  where r.ts is not null
    and coalesce(r.is_billable, true)
    and not coalesce(r.gateway_cache_hit, false)
),
numbered as (
  select
    *,
    row_number() over (order by ts, load_id nulls last, source_line nulls last, dedup_key nulls last) as rid,
    case when head_key is null then load_id end as headless_load,
    case when head_key is null then source_line end as headless_line,
    row_number() over (
      partition by session_id, alone_load, alone_line, pool_org, pool_project, pool_region, provider, model
      order by ts, load_id nulls last, source_line nulls last, dedup_key nulls last
    ) as turn
  from billed
),
written as (
  select
    *,
    -- the lifetime is that of the last write that made most of what the cache holds
    max(case when cache_write_tokens > 0 and 2 * cache_write_tokens >= cached_tokens
      then 2 * turn + is_long_write end) over (
      partition by session_id, alone_load, alone_line, pool_org, pool_project, pool_region, provider, model
      order by turn rows between unbounded preceding and current row
    ) as last_write
  from numbered
),
held as (
  select *, case when last_write % 2 = 1 then coalesce(long_lifetime_s, lifetime_s) else lifetime_s end as held_s
  from written
)
select
  *,
  lag(ts) over same_model as s_ts,
  lag(input_tokens) over same_model as s_input,
  lag(cached_tokens) over same_model as s_cached,
  lag(held_s) over same_model as s_held,
  lag(ready_at) over same_model as s_ready,
  lag(blocks) over same_model as s_blocks,
  lag(load_id) over same_model as s_load_id,
  lag(source_line) over same_model as s_source_line,
  lag(dedup_key) over same_model as s_dedup_key,
  lead(ts) over same_model as s_next_ts,
  lag(ts) over any_model as a_ts,
  lag(provider) over any_model as a_provider,
  lag(model) over any_model as a_model,
  lag(input_tokens) over any_model as a_input,
  lag(cached_tokens) over any_model as a_cached,
  lag(held_s) over any_model as a_held,
  lag(ready_at) over any_model as a_ready,
  lag(blocks) over any_model as a_blocks,
  lag(load_id) over any_model as a_load_id,
  lag(source_line) over any_model as a_source_line,
  lag(dedup_key) over any_model as a_dedup_key,
  lag(ts) over same_head as h_ts,
  lag(head_key) over same_head as h_key,
  lag(input_tokens) over same_head as h_input,
  lag(cached_tokens) over same_head as h_cached,
  lag(held_s) over same_head as h_held,
  lag(ready_at) over same_head as h_ready,
  lag(blocks) over same_head as h_blocks,
  lag(load_id) over same_head as h_load_id,
  lag(source_line) over same_head as h_source_line,
  lag(dedup_key) over same_head as h_dedup_key,
  lead(ts) over same_head as h_next_ts,
  lead(cache_read_tokens) over same_head as h_next_read,
  lag(ts) over same_feature as f_ts,
  lag(cached_tokens) over same_feature as f_cached,
  lag(held_s) over same_feature as f_held,
  lag(load_id) over same_feature as f_load_id,
  lag(source_line) over same_feature as f_source_line,
  lag(dedup_key) over same_feature as f_dedup_key,
  lead(ts) over same_feature as f_next_ts,
  lead(cache_read_tokens) over same_feature as f_next_read
from held
window
  same_model as (
    partition by session_id, alone_load, alone_line, pool_org, pool_project, pool_region, provider, model
    order by ts, load_id nulls last, source_line nulls last, dedup_key nulls last
  ),
  any_model as (
    partition by session_id, alone_load, alone_line, pool_org order by ts, load_id nulls last, source_line nulls last, dedup_key nulls last
  ),
  same_head as (
    partition by head_key, headless_load, headless_line, pool_org, pool_project, pool_region, provider, model
    order by ts, load_id nulls last, source_line nulls last, dedup_key nulls last
  ),
  same_feature as (
    partition by feature, pool_org, pool_project, pool_region, provider, model
    order by ts, load_id nulls last, source_line nulls last, dedup_key nulls last
  )
