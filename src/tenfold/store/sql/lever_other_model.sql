-- Requests as another model would answer them, and what is asked again of their own model.
-- in:  the requests, with the knobs of {lever}: target_key, way (routed, accepted, escalated, forfeited), keeps and
--      own_keeps (cached reads stay: 1, 0; keeps 2: not known), and what was measured of the other model: input, output,
--      set_pusd; the settings (one row: the ratios of input and of output as fractions of whole numbers, sessionless_keeps,
--      keeps_writes, has_candidate); the calls that each way makes (way, is_own); day_map
-- out: one row a call, with its key, counts and measured cost; an escalated request's second call has an id of its own
-- units: tokens, each class rounded half even; media stay as they are; set_pusd in pUSD
with sized as (
  select
    p.*,
    s.*,
    {text_read} as text_read,
    {text_uncached} as text_uncached,
    {cached_media} as cached_media,
    {media} as media,
    {output_media} as output_media,
    case when p.{lever}_input is null then s.input_num when p.input_tokens > 0 then p.{lever}_input else 0 end as in_num,
    case when p.{lever}_input is null then s.input_den when p.input_tokens > 0 then p.input_tokens else 1 end as in_den,
    case when p.{lever}_output is null then s.output_num when p.output_tokens > 0 then p.{lever}_output else 0 end
      as out_num,
    case when p.{lever}_output is null then s.output_den when p.output_tokens > 0 then p.output_tokens else 1 end
      as out_den
  from {requests} as p
  cross join {settings} as s
),
scaled as (
  select
    p.*,
    {read_scaled} + p.cached_media as read_scaled,
    {write_scaled} as write_rounded,
    {long_scaled} as long_rounded,
    {uncached_scaled} as text_scaled,
    case when p.{lever}_output is null then {output_scaled} + p.output_media else p.{lever}_output end as output_scaled,
    {reasoning_scaled} as reasoning_rounded
  from sized as p
),
held as (
  select
    *,
    -- measured input is shared out over its classes; two that are rounded up hold no more than there is
    case when {lever}_input - read_scaled < write_rounded then {lever}_input - read_scaled else write_rounded end
      as write_scaled,
    coalesce({lever}_input, text_scaled + read_scaled + write_rounded + media - cached_media) as input_scaled
  from scaled
),
rated as (
  select
    h.*,
    case when h.long_rounded < h.write_scaled then h.long_rounded else h.write_scaled end as long_scaled,
    case
      when m.rate_cache_read is null then 0
      when h.{lever}_keeps = 2 then h.sessionless_keeps
      else h.{lever}_keeps
    end as reads_kept,
    case when m.rate_cache_write is null then 0 else h.keeps_writes end as writes_kept,
    case when m.rate_cache_write_long is null then 0 else h.keeps_writes end as longs_kept
  from held as h
  left join day_map as m
    on h.{lever}_target_key = m.price_key
    and coalesce(cast(h.ts as date), date '1900-01-01') = m.day
    and coalesce(h.ts, timestamp '1900-01-01 00:00:00') >= m.valid_from
    and coalesce(h.ts, timestamp '1900-01-01 00:00:00') < m.valid_to
    and h.input_scaled > m.above
    and h.input_scaled <= m.up_to
)
select
  {columns},
  case when w.is_own = 1 and r.{lever}_way = 'escalated' then -r.rid - 1 else r.call_id end as call_id,
  case when w.is_own = 1 and r.{lever}_way = 'escalated' then 0 else r.cost_pusd end as cost_pusd,
  case when w.is_own = 1 then r.price_key else r.{lever}_target_key end as new_price_key,
  cast(case
    when w.is_own = 0 then r.input_scaled
    when r.{lever}_way = 'escalated' then r.input_tokens + r.has_candidate * r.output_scaled
    else r.input_tokens
  end as bigint) as new_input_tokens,
  cast(case
    when r.cache_read_tokens is null then null
    when w.is_own = 0 then r.read_scaled * r.reads_kept
    else r.cache_read_tokens * r.{lever}_own_keeps
  end as bigint) as new_cache_read_tokens,
  -- long writes without a rate of their own are written for the default lifetime
  cast(case
    when r.cache_write_tokens is null then null
    when w.is_own = 1 then r.cache_write_tokens
    when r.longs_kept = 0 then r.write_scaled * r.writes_kept
    else (r.write_scaled - r.long_scaled) * r.writes_kept + r.long_scaled
  end as bigint) as new_cache_write_tokens,
  cast(case
    when r.cache_write_long_tokens is null then null
    when w.is_own = 1 then r.cache_write_long_tokens
    else r.long_scaled * r.longs_kept
  end as bigint) as new_cache_write_long_tokens,
  cast(case when w.is_own = 1 then r.output_tokens else r.output_scaled end as bigint) as new_output_tokens,
  cast(case
    when r.reasoning_tokens is null then null
    when w.is_own = 1 then r.reasoning_tokens
    when r.reasoning_rounded < r.output_scaled - r.output_media then r.reasoning_rounded
    else r.output_scaled - r.output_media
  end as bigint) as new_reasoning_tokens,
  case when w.is_own = 0 then r.{lever}_set_pusd end as new_set_pusd{new_media}
from rated as r
join {calls} as w on r.{lever}_way = w.way
