-- What a lever on its own did to the requests in its where, counted.
-- in:  lever_base; what the lever judged (rid, fate); its versions of the requests, pulled alone
-- out: one row a (fate, feature, model); moved: changed, and priced after it (or removed); no_price: the price tried does
--      not exist
-- units: tokens as logged, and reads and writes after the change; costs in pUSD as they are (now) and after the change (then)
with judged as (
  select j.fate, b.feature, b.model, b.cache_read_tokens, b.cache_write_tokens, b.cost_pusd, j.rid
  from {judged} as j
  join lever_base as b on j.rid = b.rid
  where j.fate is not null
),
-- the call that takes the request's place; a further call that it becomes is a row of its own, and no further request
counted as (
  select
    case when j.fate <> 'touched' then j.fate when not v.is_kept then 'no_price' else 'moved' end as fate,
    j.feature,
    j.model,
    1 as requests,
    j.cache_read_tokens as read_tokens,
    j.cache_write_tokens as write_tokens,
    v.cache_read_tokens as kept_read_tokens,
    v.cache_write_tokens as kept_write_tokens,
    j.cost_pusd as now_pusd,
    case when j.fate <> 'touched' then j.cost_pusd else v.cost_pusd end as then_pusd
  from judged as j
  left join {versions} as v on j.rid = v.call_id and v.levers = {bit}
  union all
  select 'moved', b.feature, b.model, 0, 0, 0, v.cache_read_tokens, v.cache_write_tokens, 0, v.cost_pusd
  from {versions} as v
  join lever_base as b on v.rid = b.rid
  where v.call_id <> v.rid and v.levers = {bit}
)
select
  fate,
  feature,
  model,
  cast(sum(requests) as bigint) as requests,
  cast(coalesce(sum(read_tokens), 0) as bigint) as read_tokens,
  cast(coalesce(sum(write_tokens), 0) as bigint) as write_tokens,
  cast(coalesce(sum(kept_read_tokens), 0) as bigint) as kept_read_tokens,
  cast(coalesce(sum(kept_write_tokens), 0) as bigint) as kept_write_tokens,
  coalesce(cast(sum(now_pusd) as decimal(38, 0)), 0) as now_pusd,
  coalesce(cast(sum(then_pusd) as decimal(38, 0)), 0) as then_pusd
from counted
group by fate, feature, model
