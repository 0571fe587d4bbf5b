-- Requests that both models were scored on: what a router is held against, on the same requests.
-- in:  the scored requests; what was judged; the trial's versions
-- out: one row a request in where with both scores and both prices: scores, costs, whether the other model's answer
--      stands, the session
-- units: scores in 1e-12, costs in pUSD
select
  s.rid,
  s.session_id,
  s.weak_e12,
  s.strong_e12,
  v.cost_pusd as weak_pusd,
  s.cost_pusd as strong_pusd,
  coalesce(j.verdict in ('routed', 'accepted'), false) as is_weak
from {scored} as s
join {trial} as v on s.rid = v.rid and s.rid = v.call_id
join {judged} as j on s.rid = j.rid
where v.is_kept and s.weak_e12 is not null and s.strong_e12 is not null
