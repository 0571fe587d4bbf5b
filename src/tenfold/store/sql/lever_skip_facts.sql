-- What the replayed cache did, by feature.
-- in:  lever_base; lever_skip_judged; lever_skip_requests; the hits (rid, filler_rid); lever_log; the rule
-- out: one row a feature: billed requests in where, those with a key, hits, hits of which both answers are known and those
--      of them that differ, answers stored, misses that began while an equal one was running, rule matches; cost of all
--      and of those that go, and fees
-- units: money in pUSD
with running as (
  select
    r.rid,
    r.ts < max(r.ends_at) over (
      partition by r.key_hash, r.key_check order by r.ts, r.rid rows between unbounded preceding and 1 preceding
    ) as is_concurrent
  from lever_skip_requests as r
  left join {hits} as h on r.rid = h.rid
  where h.rid is null
),
marked as (
  select
    b.feature,
    b.cost_pusd,
    j.fate,
    j.fee_pusd,
    case when r.rid is not null then 1 else 0 end as keyed,
    case when h.rid is not null then 1 else 0 end as hits,
    case when own.response_hash is not null and kept.response_hash is not null then 1 else 0 end as compared,
    case when own.response_hash <> kept.response_hash then 1 else 0 end as differing,
    case when h.rid is null and r.stored_at is not null then 1 else 0 end as stored,
    case when running.is_concurrent then 1 else 0 end as concurrent,
    case when {rule} then 1 else 0 end as by_rule
  from lever_base as b
  join lever_skip_judged as j on b.rid = j.rid
  left join lever_skip_requests as r on b.rid = r.rid
  left join running on b.rid = running.rid
  left join {hits} as h on b.rid = h.rid
  left join lever_log as own on h.rid = own.rid
  left join lever_log as kept on h.filler_rid = kept.rid
  where j.fate is not null and j.fate <> 'not_billed'
)
select
  feature,
  cast(count(*) as bigint) as requests,
  cast(sum(keyed) as bigint) as keyed,
  cast(sum(hits) as bigint) as hits,
  cast(sum(compared) as bigint) as compared,
  cast(sum(differing) as bigint) as differing,
  cast(sum(stored) as bigint) as stored,
  cast(sum(concurrent) as bigint) as concurrent,
  cast(sum(by_rule) as bigint) as by_rule,
  coalesce(sum(cast(cost_pusd as decimal(38, 0))), 0) as cost_pusd,
  coalesce(sum(cast(case when fate = 'touched' then cost_pusd end as decimal(38, 0))), 0) as gone_pusd,
  coalesce(sum(cast(fee_pusd as decimal(38, 0))), 0) as fees_pusd
from marked
group by feature
