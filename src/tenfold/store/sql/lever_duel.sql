-- Two levers that want the same requests: what each would save of them alone, by feature, and what each saves of others.
-- in:  the first version of the requests, and which of them both want; both levers' versions, each pulled alone
-- out: one row a (is_contested, feature): what the first saves, what the second saves, before fees and fixed
--      charges, and of how many requests
-- units: pUSD
with first_of as (
  select v.rid, sum(cast(v.cost_pusd as decimal(38, 0))) as pusd
  from {first} as v
  group by v.rid
),
second_of as (
  select v.rid, sum(cast(v.cost_pusd as decimal(38, 0))) as pusd
  from {second} as v
  group by v.rid
),
claimed as (
  select r.rid, r.feature, r.cost_pusd, coalesce({contested}, false) as is_contested
  from {rows} as r
)
select
  c.is_contested,
  c.feature,
  coalesce(sum(cast(c.cost_pusd as decimal(38, 0)) - a.pusd), 0) as first_pusd,
  coalesce(sum(cast(c.cost_pusd as decimal(38, 0)) - b.pusd), 0) as second_pusd,
  cast(count(a.rid) as bigint) as first_requests,
  cast(count(b.rid) as bigint) as second_requests
from claimed as c
left join first_of as a on c.rid = a.rid
left join second_of as b on c.rid = b.rid
where a.rid is not null or b.rid is not null
group by c.is_contested, c.feature
