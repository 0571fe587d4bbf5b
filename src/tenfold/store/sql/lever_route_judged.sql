-- Which requests go to the other model, and which lose their cache because the turn before them went there.
-- in:  the scored requests; the trial's versions (is_kept: there is a price); the settings (one row)
-- out: one row a request of the log that is in where, or loses its cached reads: rid, verdict (routed, accepted, escalated,
--      or why not; NULL outside where), fate (touched, or the verdict), the knobs of lever_other_model, fee_pusd
-- units: tokens; costs and fees in pUSD
with tried as (
  select v.rid, min(case when v.is_kept then 1 else 0 end) as has_price
  from {trial} as v
  group by v.rid
),
unlike as (
  select distinct s.session_id
  from {scored} as s
  cross join {settings} as t
  where t.is_sticky and s.in_where and not s.is_same and not s.is_good and s.session_id is not null
),
decided as (
  select
    s.*,
    t.cache,
    t.router_pusd,
    t.verifier_pusd,
    case
      when not s.in_where then null
      when s.is_same then 'same_model'
      when s.price_status <> 'priced' then 'unpriced'
      when s.is_slow then 'vetoed'
      when not s.is_scored then 'no_score'
      when not s.is_cascade and not s.is_good then 'below_quality'
      when u.session_id is not null then 'unlike_session'
      when coalesce(y.has_price, 0) = 0 then 'no_price'
      when not s.is_cascade then 'routed'
      when s.is_good then 'accepted'
      else 'escalated'
    end as verdict
  from {scored} as s
  cross join {settings} as t
  left join unlike as u on s.session_id = u.session_id
  left join tried as y on s.rid = y.rid
),
-- of turns that begin at one instant, the last by id: not by its place in the file
placed as (
  select
    session_id,
    ts,
    rid as last_rid,
    row_number() over (
      partition by session_id, ts order by coalesce(request_id, '') desc, rid desc
    ) as place
  from decided
  where session_id is not null and ts is not null
),
starts as (
  select session_id, ts, last_rid
  from placed
  where place = 1
),
turns as (
  select
    session_id,
    ts,
    lag(last_rid) over (partition by session_id order by ts) as prev_rid,
    lag(ts) over (partition by session_id order by ts) as prev_ts
  from starts
),
followed as (
  select
    d.*,
    coalesce(d.verdict in ('routed', 'accepted', 'escalated'), false) as is_touched,
    before.rid is not null as has_before,
    coalesce(before.verdict in ('routed', 'accepted', 'escalated'), false) as is_there,
    coalesce(before.verdict in ('routed', 'accepted'), false) as is_only_there
  from decided as d
  left join turns as t on d.session_id = t.session_id and d.ts = t.ts and t.prev_ts >= d.ts - interval '24' hour
  left join decided as before on t.prev_rid = before.rid
),
kept as (
  select
    *,
    case
      when cache = 'keep' then 1
      when cache = 'lose' then 0
      when session_id is null then 2
      when not has_before or is_there then 1
      else 0
    end as keeps,
    case when cache = 'follow' and is_only_there then 0 else 1 end as own_keeps
  from followed
),
told as (
  select
    *,
    not is_touched and own_keeps = 0 and price_status = 'priced' and coalesce(cache_read_tokens, 0) > 0 as is_forfeited
  from kept
)
select
  rid,
  verdict,
  case when is_touched or is_forfeited then 'touched' else verdict end as fate,
  target_key as {lever}_target_key,
  case when is_forfeited then 'forfeited' else verdict end as {lever}_way,
  keeps as {lever}_keeps,
  own_keeps as {lever}_own_keeps,
  measured_input as {lever}_input,
  measured_output as {lever}_output,
  measured_pusd as {lever}_set_pusd,
  cast(case
    when not in_where or verdict = 'vetoed' then null
    when is_touched then router_pusd + verifier_pusd
    else router_pusd
  end as bigint) as fee_pusd
from told
where in_where or is_forfeited
