-- What spend is divided by: requests, sessions, users, customers and outcomes, for the whole window, each month and each
-- value of each dimension, in one pass (distinct counts do not add up).
-- in:  priced: the window's requests priced; keys; month, cost, customer: SQL over the priced request; failed:
--      statuses of failures; sets: the grouping sets; per kind of token kinds
-- out: one row a group; all_<dimension> 1 where the row is over all values of it. Over requests that have a price: costs,
--      tokens, distinct sessions, users and customers with their requests and cost, and by two bases (outcome_ok, status)
--      outcomes that were good, requests and cost of which that is known, outcomes that are open (_open). A failed attempt, or one that was tried again,
--      is known to be no good outcome unless it was judged one, and so is
--      (by outcome_ok) what else a judged session holds; what a gateway's cache answered is an outcome at no cost.
-- units: tokens; costs in pUSD
with retried as (
  select distinct retry_of as request_id from requests where retry_of is not null
),
-- sessions (traces, where there is no session) in which an outcome was judged: what else is in them was done for it
judged as (
  select distinct coalesce(session_id, trace_id) as work_id
  from requests
  where outcome_ok is not null and coalesce(session_id, trace_id) is not null
),
counted as (
  select
    {month} as month,
    {dimensions}
    p.is_billed,
    p.is_billed and p.is_priced as is_costed,
    p.is_priced and (p.is_billed or coalesce(p.gateway_cache_hit, false)) as is_outcome,
    case when p.is_billed then cast({cost} as decimal(38, 0)) end as cost_pusd,
    p.input_tokens,
    p.output_tokens,
    {kinds}
    p.session_id,
    p.user_id,
    {customer} as customer,
    p.outcome_ok is not null as is_judged,
    p.status is not null as tells_status,
    case
      when not p.is_priced then null
      when p.outcome_ok then 1
      when p.outcome_ok = false or p.status in ({failed}) or r.request_id is not null or j.work_id is not null then 0
    end as judged_ok,
    case
      when not p.is_priced or not (p.is_billed or coalesce(p.gateway_cache_hit, false)) then null
      when p.status = 'success' then 1
      when p.status is not null or r.request_id is not null then 0
    end as status_ok
  from {priced} as p
  join keys as k on p.price_key = k.price_key
  left join retried as r on p.request_id = r.request_id
  left join judged as j on coalesce(p.session_id, p.trace_id) = j.work_id
)
select
  month,
  {names}
  {grouped}
  cast(coalesce(sum(case when is_billed then 1 else 0 end), 0) as bigint) as requests,
  cast(coalesce(sum(case when is_costed then 1 else 0 end), 0) as bigint) as costed,
  coalesce(sum(cost_pusd), 0) as cost_pusd,
  cast(coalesce(sum(case when is_costed then input_tokens end), 0) as bigint) as input_tokens,
  cast(coalesce(sum(case when is_costed then output_tokens end), 0) as bigint) as output_tokens,
  {kind_sums}
  cast(count(distinct case when is_costed then session_id end) as bigint) as session_units,
  cast(count(case when is_costed then session_id end) as bigint) as session_requests,
  coalesce(sum(case when session_id is not null then cost_pusd end), 0) as session_pusd,
  cast(count(distinct case when is_costed then user_id end) as bigint) as user_units,
  cast(count(case when is_costed then user_id end) as bigint) as user_requests,
  coalesce(sum(case when user_id is not null then cost_pusd end), 0) as user_pusd,
  cast(count(distinct case when is_costed then customer end) as bigint) as customer_units,
  cast(count(case when is_costed then customer end) as bigint) as customer_requests,
  coalesce(sum(case when customer is not null then cost_pusd end), 0) as customer_pusd,
  cast(coalesce(sum(case when is_judged then 1 else 0 end), 0) as bigint) as judged_told,
  cast(coalesce(sum(judged_ok), 0) as bigint) as judged_units,
  cast(count(case when is_costed then judged_ok end) as bigint) as judged_requests,
  cast(coalesce(sum(case when is_outcome and judged_ok is null then 1 else 0 end), 0) as bigint) as judged_open,
  coalesce(sum(case when judged_ok is not null then cost_pusd end), 0) as judged_pusd,
  cast(coalesce(sum(case when tells_status then 1 else 0 end), 0) as bigint) as status_told,
  cast(coalesce(sum(status_ok), 0) as bigint) as status_units,
  cast(count(case when is_costed then status_ok end) as bigint) as status_requests,
  cast(coalesce(sum(case when is_outcome and status_ok is null then 1 else 0 end), 0) as bigint) as status_open,
  coalesce(sum(case when status_ok is not null then cost_pusd end), 0) as status_pusd
from counted
group by grouping sets ({sets})
