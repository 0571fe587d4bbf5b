-- Which requests can wait for a batch, or for cheaper hours, and what stands against the others.
-- in:  lever_base with its marks; the keys that have the standard tier: price_key; hours: price_key, starts, ends,
--      moved_to (NULL where no later hour is cheaper; no rows but for cheaper hours); due: when the answer comes
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
    when b.next_ts <= {due} then 'chained'
    when b.price_status <> 'priced' then 'unpriced'
    when {by_hours} and h.price_key is null then 'one_price'
    when {by_hours} and h.moved_to is null then 'cheapest_now'
    when not b.allowed_batch_api then 'vetoed'
    when {by_hours} and h.moved_to > b.ts + interval '1' second * b.batch_api_wait_s then 'vetoed'
    else 'touched'
  end as fate
from lever_base as b
left join {keys} as k on b.price_key = k.price_key
left join {hours} as h on b.price_key = h.price_key and b.ts >= h.starts and b.ts < h.ends
