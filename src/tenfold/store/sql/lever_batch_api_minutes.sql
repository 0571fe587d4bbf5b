-- What capacity bought ahead would have served, minute by minute (of a request's start).
-- in:  lever_base with its marks; the keys that have the standard tier: price_key; weights of tokens, as whole numbers of
--      millionths of an uncached input token
-- out: one row a minute with such requests: load, cost
-- units: load in millionths of an input token; cost in pUSD
select
  cast(date_trunc('minute', b.ts) as timestamp) as starts,
  sum(cast(
    cast(coalesce(b.input_tokens, 0) - coalesce(b.cache_read_tokens, 0) as decimal(19, 0)) * 1000000
    + cast(coalesce(b.cache_read_tokens, 0) as decimal(19, 0)) * {cached_weight}
    + cast(coalesce(b.output_tokens, 0) as decimal(19, 0)) * {output_weight}
  as decimal(38, 0))) as load,
  sum(cast(b.cost_pusd as decimal(38, 0))) as cost_pusd
from lever_base as b
join {keys} as k on b.price_key = k.price_key
where b.in_batch_api and b.is_billed and b.price_status = 'priced' and b.ts is not null
group by date_trunc('minute', b.ts)
