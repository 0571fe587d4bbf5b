-- Each request beside the one that it is held against: the turn before of its session and model, if that is within the
-- cache's lifetime; else the turn before by another model, if that is; else the last one with the same first blocks.
-- in:  cache_breaks_turns
-- out: the same rows with pair (turn, switch, head, none) and what is known of the other one (ref_*, pair_*)
-- units: tokens, seconds
with paired as (
  select
    t.*,
    case
      when t.session_id is not null and t.ts <= t.s_ts + interval '1' second * t.s_held then 'turn'
      when t.session_id is not null and (t.a_provider <> t.provider or t.a_model <> t.model)
        and t.ts <= t.a_ts + interval '1' second * t.a_held then 'switch'
      when t.session_id is not null and t.s_ts is not null then 'turn'
      when t.h_key is not null then 'head'
      else 'none'
    end as pair
  from cache_breaks_turns as t
)
select
  *,
  case pair when 'turn' then s_ts when 'switch' then a_ts when 'head' then h_ts end as ref_ts,
  case pair when 'turn' then s_input when 'switch' then a_input when 'head' then h_input end as ref_input,
  case pair when 'turn' then s_cached when 'switch' then a_cached when 'head' then h_cached end as ref_cached,
  case pair when 'turn' then s_held when 'switch' then a_held when 'head' then h_held end as ref_held,
  case pair when 'turn' then s_ready when 'switch' then a_ready when 'head' then h_ready end as ref_ready,
  case pair when 'turn' then s_blocks when 'switch' then a_blocks when 'head' then h_blocks end as ref_blocks,
  case pair when 'turn' then s_load_id when 'switch' then a_load_id when 'head' then h_load_id end as pair_load_id,
  case pair when 'turn' then s_source_line when 'switch' then a_source_line when 'head' then h_source_line end
    as pair_source_line,
  case pair when 'turn' then s_dedup_key when 'switch' then a_dedup_key when 'head' then h_dedup_key end
    as pair_dedup_key
from paired
