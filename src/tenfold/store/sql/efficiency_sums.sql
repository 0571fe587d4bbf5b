-- How well the billed requests used what they cost, by month and dimensions: sums that add up over any of them.
-- in:  priced: the window's requests priced, with rid; repeats: rid of repeated questions; keys; failed: statuses of
--      failures; month, cost, input_cost, reasoning_cost: SQL over the priced request
-- out: one row a month (NULL without a time) and group. Per mark: _known (requests of which the log tells), _requests,
--      _unpriced and _pusd of all that bear it, _once_requests and _once_pusd of those of which it is the first cause, in
--      the order error, retry, truncated, duplicate. A retry of an attempt that failed and was billed is no cause: that
--      attempt is one already.
-- units: tokens; costs in pUSD over requests that have a price
with failed as (
  select distinct request_id
  from requests
  where status in ({failed})
    and coalesce(is_billable, true)
    and not coalesce(gateway_cache_hit, false)
    and request_id in (select retry_of from requests where retry_of is not null)
),
marked as (
  select
    {month} as month,
    {dimensions}
    k.service_tier as tier,
    p.is_priced,
    cast({cost} as decimal(38, 0)) as cost_pusd,
    cast({input_cost} as decimal(38, 0)) as input_pusd,
    cast({reasoning_cost} as decimal(38, 0)) as reasoning_pusd,
    case when p.is_priced then coalesce(p.input_tokens, 0) + coalesce(p.output_tokens, 0) else 0 end as tokens,
    p.input_tokens,
    p.output_tokens,
    p.cache_read_tokens,
    p.cache_write_tokens,
    p.reasoning_tokens,
    p.attempt is not null or p.retry_of is not null as tells_retry,
    p.status is not null as tells_error,
    p.finish_reason is not null as tells_truncated,
    p.prompt_hash is not null and p.params_hash is not null and p.is_dated as tells_duplicate,
    p.session_id is not null as tells_session,
    coalesce(p.status in ({failed}), false) as is_error,
    coalesce(p.attempt > 0, false) or p.retry_of is not null as is_retry,
    coalesce(p.finish_reason = 'length', false) as is_truncated,
    r.rid is not null as is_duplicate,
    f.request_id is not null as is_after_error
  from {priced} as p
  join keys as k on p.price_key = k.price_key
  left join {repeats} as r on p.rid = r.rid
  left join failed as f on p.retry_of = f.request_id
  where p.is_billed
),
caused as (
  select
    *,
    case
      when is_error then 'error'
      when is_retry and not is_after_error then 'retry'
      when is_truncated then 'truncated'
      when is_duplicate then 'duplicate'
    end as cause
  from marked
)
select
  month,
  {names}
  cast(count(*) as bigint) as requests,
  cast(sum(case when is_priced then 0 else 1 end) as bigint) as unpriced_requests,
  coalesce(sum(cost_pusd), 0) as cost_pusd,
  coalesce(sum(input_pusd), 0) as input_pusd,
  cast(sum(tokens) as bigint) as tokens,
  cast(count(input_tokens) as bigint) as input_known,
  cast(coalesce(sum(input_tokens), 0) as bigint) as input_tokens,
  cast(count(case when input_tokens is not null then cache_read_tokens end) as bigint) as read_known,
  cast(coalesce(sum(case when cache_read_tokens is not null then input_tokens end), 0) as bigint) as read_known_tokens,
  cast(coalesce(sum(case when input_tokens is not null then cache_read_tokens end), 0) as bigint) as read_tokens,
  cast(sum(case when input_tokens is not null and cache_read_tokens > 0 then 1 else 0 end) as bigint) as read_requests,
  cast(coalesce(sum(cache_write_tokens), 0) as bigint) as write_tokens,
  cast(sum(case when tier = 'batch' then 1 else 0 end) as bigint) as batch_requests,
  cast(sum(case when tier = 'batch' then tokens else 0 end) as bigint) as batch_tokens,
  coalesce(sum(case when tier = 'batch' then cost_pusd end), 0) as batch_pusd,
  cast(sum(case when tier = 'flex' then 1 else 0 end) as bigint) as flex_requests,
  cast(sum(case when tier = 'flex' then tokens else 0 end) as bigint) as flex_tokens,
  coalesce(sum(case when tier = 'flex' then cost_pusd end), 0) as flex_pusd,
  cast(count(case when output_tokens is not null then reasoning_tokens end) as bigint) as reasoning_known,
  cast(coalesce(sum(case when reasoning_tokens is not null then output_tokens end), 0) as bigint)
    as reasoning_known_tokens,
  cast(coalesce(sum(case when output_tokens is not null then reasoning_tokens end), 0) as bigint) as reasoning_tokens,
  coalesce(sum(reasoning_pusd), 0) as reasoning_pusd,
  cast(sum(case when tells_session then 1 else 0 end) as bigint) as session_known,
  {marks}
from caused
group by all
