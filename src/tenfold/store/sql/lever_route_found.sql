-- What a judgement of the route lever comes to, counted.
-- in:  what was judged; lever_base
-- out: one row a (verdict, way): requests, what they cost now, cached reads that they lose for certain or may lose, fees
-- units: tokens; costs in pUSD
select
  j.verdict,
  j.route_way as way,
  cast(count(*) as bigint) as requests,
  coalesce(sum(cast(b.cost_pusd as decimal(38, 0))), 0) as now_pusd,
  cast(coalesce(sum(case
    when j.route_way = 'forfeited' or j.route_way = 'escalated' and j.route_own_keeps = 0 or j.route_keeps = 0
      then b.cache_read_tokens
  end), 0) as bigint) as lost_read_tokens,
  cast(coalesce(sum(case when j.route_keeps = 2 then b.cache_read_tokens end), 0) as bigint) as unknown_read_tokens,
  coalesce(sum(cast(j.fee_pusd as decimal(38, 0))), 0) as fee_pusd
from {judged} as j
join lever_base as b on j.rid = b.rid
group by j.verdict, j.route_way
