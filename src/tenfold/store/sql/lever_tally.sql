-- What a lever on its own did to the requests in its where, counted.
-- in:  lever_base; what the lever judged (rid, fate); its versions of the requests, pulled alone
-- out: one row a (fate, feature, model); moved: changed, and priced after it (or removed); no_price: the price tried does
--      not exist
-- units: tokens as logged, and reads after the change; costs in pUSD as they are (now) and after the change (then)
with changed as (
  select
    v.rid,
    min(case when v.is_kept then 1 else 0 end) as is_kept,
    sum(cast(v.cost_pusd as decimal(38, 0))) as then_pusd,
    sum(v.cache_read_tokens) as kept_read_tokens
  from {versions} as v
  where v.levers = {bit}
  group by v.rid
),
counted as (
  select
    case when j.fate <> 'touched' then j.fate when c.is_kept = 0 then 'no_price' else 'moved' end as fate,
    b.feature,
    b.model,
    b.cache_read_tokens,
    b.cache_write_tokens,
    c.kept_read_tokens,
    b.cost_pusd as now_pusd,
    case when j.fate <> 'touched' then b.cost_pusd else c.then_pusd end as then_pusd
  from {judged} as j
  join lever_base as b on j.rid = b.rid
  left join changed as c on j.rid = c.rid
  where j.fate is not null
)
select
  fate,
  feature,
  model,
  cast(count(*) as bigint) as requests,
  cast(coalesce(sum(cache_read_tokens), 0) as bigint) as read_tokens,
  cast(coalesce(sum(cache_write_tokens), 0) as bigint) as write_tokens,
  cast(coalesce(sum(kept_read_tokens), 0) as bigint) as kept_read_tokens,
  coalesce(sum(cast(now_pusd as decimal(38, 0))), 0) as now_pusd,
  coalesce(sum(cast(then_pusd as decimal(38, 0))), 0) as then_pusd
from counted
group by fate, feature, model
