-- Billed traffic hour by hour, with what it costs.
-- in:  priced requests; a condition on them; sums of the meters in use
-- out: one row an hour (naive UTC) and is_priced: requests, output_tokens, and per meter <meter>_units and <meter>_pusd
-- units: those of the meters; costs in pUSD
select
  date_trunc('hour', priced_at) as hour,
  is_priced,
  count(*) as requests,
  cast(sum(output_tokens) as bigint) as output_tokens,
  {sums}
from {priced}
where is_billed and {condition}
group by date_trunc('hour', priced_at), is_priced
order by hour, is_priced
