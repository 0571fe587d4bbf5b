-- Why requests in where stay for their score: who set the bar that it does not reach, or what there is no bar for.
-- in:  what was judged; the scored requests; lever_base; own_e12: the lever's own min_quality (BIGINT, NULL if not stated)
-- out: one row a bar (own, levels: the service levels; today: today's model's score; no_bar: scored, and nothing to hold
--      it against; no_score): requests, the least and the largest bar, the best score
-- units: scores in 1e-12
with told as (
  select
    case
      when s.score_e12 is null then 'no_score'
      when s.least_e12 is null then 'no_bar'
      when b.route_least_e12 is null then 'today'
      when b.route_least_e12 = {own_e12} then 'own'
      else 'levels'
    end as bar,
    s.least_e12,
    s.score_e12
  from {judged} as j
  join {scored} as s on j.rid = s.rid
  join lever_base as b on j.rid = b.rid
  where j.verdict in ('below_quality', 'no_score')
)
select
  bar,
  cast(count(*) as bigint) as requests,
  min(least_e12) as least_e12,
  max(least_e12) as most_e12,
  max(score_e12) as best_e12
from told
group by bar
