-- Exact totals by dimension. Products are BIGINT; sums are taken first per (day, price key), where they fit, then as
-- decimals. Conservation counters come from the same pass.
-- in:  the priced view, keys(price_key, provider, model, service_tier, region)
-- out: one row a group; requests and units over billed rows, costs in pUSD over priced ones
with grouped as (
  select
    day,
    is_dated,
    price_key,
    {inner_dimensions}
    sum(requests) as rows_seen,
    sum(case when is_billed then requests else 0 end) as requests,
    sum(case when is_billed and not is_priced then requests else 0 end) as unpriced_requests,
    sum(case when is_billed then coalesce(input_tokens, 0) + coalesce(output_tokens, 0) else 0 end) as tokens,
    sum(case when is_billed and is_priced then coalesce(input_tokens, 0) + coalesce(output_tokens, 0) else 0 end)
      as priced_tokens,
    sum(case when is_billed then split_unknown else 0 end) as split_unknown,
    sum(case when is_billed and price_status in ('usage_missing', 'usage_partial') then requests else 0 end)
      as usage_unknown_requests,
    {unit_sums},
    {cost_sums}
  from {priced}
  group by all
)
select
  {dimensions}
  cast(coalesce(sum(rows_seen), 0) as bigint) as rows_seen,
  cast(coalesce(sum(requests), 0) as bigint) as requests,
  cast(coalesce(sum(unpriced_requests), 0) as bigint) as unpriced_requests,
  cast(coalesce(sum(tokens), 0) as bigint) as tokens,
  cast(coalesce(sum(priced_tokens), 0) as bigint) as priced_tokens,
  cast(coalesce(sum(split_unknown), 0) as bigint) as split_unknown,
  cast(coalesce(sum(usage_unknown_requests), 0) as bigint) as usage_unknown_requests,
  {unit_totals},
  {cost_totals}
from grouped
join keys using (price_key)
group by all
