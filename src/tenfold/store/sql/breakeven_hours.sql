-- Billed traffic hour by hour, with what it costs.
-- in:  priced requests; a condition on them; sums of the meters in use
-- out: one row an hour (naive UTC) and is_priced: requests, of which own (self-hosted) and by why they have no price,
--      known tokens, output_tokens, and per meter <meter>_units and <meter>_pusd
-- units: those of the meters; costs in pUSD
select
  cast(date_trunc('hour', priced_at) as timestamp) as hour,
  is_priced,
  count(*) as requests,
  sum(case when lower(provider) = 'self-hosted' then 1 else 0 end) as own,
  sum(case when price_status = 'unpriced_model' then 1 else 0 end) as unpriced_model,
  sum(case when price_status = 'unpriced_meter' then 1 else 0 end) as unpriced_meter,
  sum(case when price_status in ('usage_missing', 'usage_partial') then 1 else 0 end) as usage_missing,
  sum(case when price_status = 'ambiguous' then 1 else 0 end) as ambiguous,
  cast(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) as bigint) as tokens,
  cast(sum(output_tokens) as bigint) as output_tokens,
  {sums}
from {priced}
where is_billed and {condition}
group by date_trunc('hour', priced_at), is_priced
order by hour, is_priced
