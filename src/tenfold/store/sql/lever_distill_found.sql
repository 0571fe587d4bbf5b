-- What a judgement of the distill lever comes to, by feature.
-- in:  what was judged; lever_base; lever_log (answers)
-- out: one row a (verdict, way, feature): requests, what they cost now, answers known by their hash and how many differ,
--      requests of a stated form (NULL where no request says)
-- units: costs in pUSD
select
  j.verdict,
  j.distill_way as way,
  b.feature,
  cast(count(*) as bigint) as requests,
  coalesce(sum(cast(b.cost_pusd as decimal(38, 0))), 0) as now_pusd,
  cast(count(l.response_hash) as bigint) as known_answers,
  cast(count(distinct l.response_hash) as bigint) as distinct_answers,
  cast(sum(case when l.is_structured then 1 when not l.is_structured then 0 end) as bigint) as structured,
  cast(coalesce(sum(case when j.distill_keeps = 2 then b.cache_read_tokens end), 0) as bigint) as unknown_read_tokens
from {judged} as j
join lever_base as b on j.rid = b.rid
join lever_log as l on j.rid = l.rid
group by j.verdict, j.distill_way, b.feature
