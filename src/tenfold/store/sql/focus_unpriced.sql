-- What an export leaves out because it has no price, with the reason.
-- in:  focus_cells priced by your own prices; keys; focus_reasons(price_key, price_status, reason)
-- out: one row a day, owner, price key and status; day is null for requests without a time
-- units: tokens as far as they are known
select
  case when p.is_dated then p.day end as day,
  nullif(keys.provider, '') as provider,
  nullif(keys.model, '') as model,
  keys.service_tier,
  nullif(keys.region, '') as region,
  p.org,
  p.project,
  p.team,
  p.feature,
  p.environment,
  p.price_status,
  r.reason,
  cast(sum(p.requests) as bigint) as requests,
  cast(sum(coalesce(p.input_tokens, 0) + coalesce(p.output_tokens, 0)) as bigint) as tokens
from {own} as p
join keys on p.price_key = keys.price_key
left join focus_reasons as r on p.price_key = r.price_key and p.price_status = r.price_status
where p.is_billed and not p.is_priced
group by all
order by all nulls last
