-- Exact totals by dimension. Products are BIGINT, each of one day and price key; sums are decimals, which no bill fills.
-- Conservation counters come from the same pass.
-- in:  priced cells, keys(price_key, provider, model, service_tier, region)
-- out: one row a group; requests and units over billed rows, costs in pUSD over priced ones
select
  {dimensions}
  cast(coalesce(sum(requests), 0) as bigint) as rows_seen,
  cast(coalesce(sum(case when is_billed then requests end), 0) as bigint) as requests,
  cast(coalesce(sum(case when is_billed and not is_priced then requests end), 0) as bigint) as unpriced_requests,
  cast(coalesce(sum(case when is_billed then coalesce(input_tokens, 0) + coalesce(output_tokens, 0) end), 0) as bigint)
    as tokens,
  cast(coalesce(sum(case when is_billed and is_priced then input_tokens + output_tokens end), 0) as bigint)
    as priced_tokens,
  cast(coalesce(sum(case when is_billed then split_unknown end), 0) as bigint) as split_unknown,
  cast(coalesce(sum(case when is_billed and price_status in ('usage_missing', 'usage_partial') then requests end), 0)
    as bigint) as usage_unknown_requests,
  {unit_totals},
  {cost_totals}
from {priced}
join keys using (price_key)
group by all
