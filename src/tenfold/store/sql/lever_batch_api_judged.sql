-- Which requests can wait for a batch, and what stands against the others.
-- in:  lever_base; the keys that have the standard tier: price_key
-- out: rid, and fate: touched, or why not; NULL outside where
select
  b.rid,
  case
    when not b.in_batch_api then null
    when not b.is_billed then 'not_billed'
    when b.is_rebilled then 'retry'
    when k.price_key is null then 'other_tier'
    when b.is_stream is null then 'stream_unknown'
    when b.is_stream then 'streamed'
    when b.next_ts <= b.ts + interval '24' hour then 'chained'
    when b.price_status <> 'priced' then 'unpriced'
    when not b.allowed_batch_api then 'vetoed'
    else 'touched'
  end as fate
from lever_base as b
left join {keys} as k on b.price_key = k.price_key
