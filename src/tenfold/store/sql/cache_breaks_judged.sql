-- What became of each request's beginning: read, or lost to one cause, the first that holds.
-- in:  cache_breaks_pairs, cache_breaks_common, cache_breaks_volatile(provider, model, feature_key): features of which
--      nearly every prompt begins anew
-- out: the requests, with cause, what of them would have been read (lost_tokens) and of which classes it was billed
--      (lost_write_tokens, lost_write_long_tokens; the rest uncached), and what was written in vain (unread_*)
-- units: tokens
with measured as (
  select
    p.*,
    v.provider is not null as is_volatile,
    coalesce(m.common_blocks, 0) as common_blocks,
    -- without a shortfall nobody compared the two
    m.rid is not null as is_hashed,
    case
      when p.pair = 'none' then 0
      when p.pair = 'turn' or least(p.ref_cached, p.input_tokens) - p.cache_read_tokens < {slack}
        then least(p.ref_cached, p.input_tokens)
      when m.rid is not null
        then least(p.ref_cached, p.input_tokens, cast(floor(p.ref_input * m.common_blocks / p.ref_blocks) as bigint))
      when p.pair = 'switch' and p.input_tokens >= p.ref_input then least(p.ref_cached, p.input_tokens)
      else 0
    end as shared_tokens
  from cache_breaks_pairs as p
  left join cache_breaks_common as m on p.rid = m.rid
  left join cache_breaks_volatile as v
    on p.provider = v.provider
    and p.model = v.model
    and coalesce(p.feature, '') = v.feature_key
),
reusable as (
  select
    *,
    case
      when shared_tokens < min_tokens then 0
      else shared_tokens - shared_tokens % greatest(coalesce(increment_tokens, 0), 1)
    end as reusable_tokens,
    is_hashed and common_blocks < ref_blocks
      and ref_input * (common_blocks + 1) / ref_blocks <= shared_tokens as is_broken
  from measured
),
judged as (
  select
    *,
    case
      when control is null or control = 'none' then 'no_rule'
      when input_tokens is null or cache_read_tokens is null then 'split_unknown'
      when input_tokens < min_tokens then 'below_minimum'
      when pair = 'none' and is_volatile and blocks > 0 and ts <= f_ts + interval '1' second * f_held
        and least(f_cached, input_tokens) - cache_read_tokens >= {slack} then 'volatile_head'
      when pair = 'none' then 'first'
      when ref_cached = 0 and cache_read_tokens = 0 then 'not_cached'
      when reusable_tokens - cache_read_tokens < {slack} then 'read'
      when ts > ref_ts + interval '1' second * ref_held then case when pair = 'head' then 'cold_start' else 'gap' end
      when pair = 'switch' then 'model_switch'
      when ts < ref_ready then 'in_flight'
      when is_broken then 'prefix_broken'
      when is_hashed then case when cache_read_tokens = 0 then 'missed' else 'partly_read' end
      when input_tokens + {slack} <= ref_input then 'rewritten'
      else 'unexplained'
    end as cause
  from reusable
),
lost as (
  select
    *,
    case
      when cause = 'volatile_head' then least(f_cached, input_tokens) - cache_read_tokens
      when cause in ('gap', 'cold_start', 'model_switch', 'in_flight', 'prefix_broken', 'missed', 'partly_read',
        'rewritten', 'unexplained') then reusable_tokens - cache_read_tokens
      else 0
    end as lost_tokens,
    case
      when not cache_write_tokens > 0 or s_next_ts is not null and session_id is not null then null
      when session_id is null and blocks = 0 then null
      when ts + interval '1' second * held_s > last_ts then null
      when h_next_ts <= ts + interval '1' second * held_s and h_next_read > 0 and head_key is not null then null
      when blocks = 0 and f_next_ts <= ts + interval '1' second * held_s and f_next_read > 0 then null
      when cause in ('no_rule', 'split_unknown') then null
      else cache_write_tokens
    end as vain_write_tokens
  from judged
  cross join (select max(ts) as last_ts from requests) as log_end
),
taken as (
  select
    *,
    least(coalesce(cache_write_tokens, 0), lost_tokens) as lost_write_tokens,
    least(coalesce(cache_write_long_tokens, 0), lost_tokens) as lost_write_long_tokens
  from lost
)
select
  {kept},
  provider,
  model,
  control,
  long_lifetime_s,
  cause,
  pair,
  case when cause = 'prefix_broken' then cast(common_blocks as bigint) end as broken_at,
  case when cause = 'prefix_broken' then cast(common_blocks * prefix_block_tokens as bigint) end as broken_token,
  case when blocks > 0 and ref_blocks > 0 and pair <> 'switch' and not is_broken and reusable_tokens > 0
    and ts <= ref_ts + interval '1' second * ref_held and ts >= ref_ready and cache_read_tokens is not null
    then true else false end as is_eligible,
  case
    when session_id is null or s_ts is null then null
    when ts <= s_ts + interval '1' second * 300 then 'up_to_5_min'
    when ts <= s_ts + interval '1' second * 3600 then 'up_to_1_h'
    else 'above_1_h'
  end as gap,
  case when session_id is not null and s_ts is not null then least(coalesce(s_input, 0), input_tokens) end
    as prefix_tokens,
  lost_tokens,
  lost_write_tokens,
  lost_write_long_tokens,
  case when cause in ('gap', 'cold_start') and ts <= ref_ts + interval '1' second * long_lifetime_s
    then lost_tokens else 0 end as band_tokens,
  greatest(coalesce(vain_write_tokens, 0) - lost_write_tokens, 0) as unread_tokens,
  case when cause = 'volatile_head' then f_load_id when pair = 'turn' then s_load_id end as ref_load_id,
  case when cause = 'volatile_head' then f_source_line when pair = 'turn' then s_source_line end as ref_source_line,
  case when cause = 'volatile_head' then f_dedup_key when pair = 'turn' then s_dedup_key end as ref_dedup_key
from taken
