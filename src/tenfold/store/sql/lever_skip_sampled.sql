-- The labelled sample of a semantic cache, found in the log.
-- in:  the sample (request_id, is_hit); lever_base; lever_log
-- out: one row: sampled requests found among the billed ones in where, hits of them, cost of both
-- units: costs in pUSD
with found as (
  select
    l.request_id,
    min(s.is_hit) as is_hit,
    sum(cast(b.cost_pusd as decimal(38, 0))) as cost_pusd
  from {sample} as s
  join lever_log as l on s.request_id = l.request_id
  join lever_base as b on l.rid = b.rid
  where b.in_skip and b.is_billed and b.cost_pusd is not null
  group by l.request_id
)
select
  cast(count(*) as bigint) as sampled,
  cast(coalesce(sum(is_hit), 0) as bigint) as hits,
  coalesce(sum(cost_pusd), 0) as cost_pusd,
  coalesce(sum(case when is_hit = 1 then cost_pusd end), 0) as hit_pusd
from found
