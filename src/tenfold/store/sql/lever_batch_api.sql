-- Requests that can wait, tried in another tier. Cached reads that the batch loses become uncached input.
-- in:  the requests as priced now; the keys: price_key, moved_key, moved_tier, kept_num, kept_den (the share of cached
--      reads that stay cached, as a fraction of whole numbers)
-- out: columns of requests with the tier changed, what they were, and fate: touched, or why not; NULL outside where
-- units: tokens, the kept share rounded half up; cached media are parts of it, rounded down so that they stay parts
with judged as (
  select
    {columns},
    p.price_key as own_price_key,
    p.service_tier as own_service_tier,
    p.cache_read_tokens as own_cache_read_tokens,
    p.cache_read_audio_tokens as own_cache_read_audio_tokens,
    p.cache_read_image_tokens as own_cache_read_image_tokens,
    p.cache_read_video_tokens as own_cache_read_video_tokens,
    p.cache_read_tokens as read_tokens,
    p.cache_write_tokens as write_tokens,
    k.moved_key,
    k.moved_tier,
    p.cache_read_tokens * 2 * k.kept_num + k.kept_den as twice_kept,
    2 * k.kept_den as twice_den,
    k.kept_den,
    p.cache_read_audio_tokens * k.kept_num as audio_kept,
    p.cache_read_image_tokens * k.kept_num as image_kept,
    p.cache_read_video_tokens * k.kept_num as video_kept,
    {cost} as now_pusd,
    case
      when not p.in_batch_api then null
      when not p.is_billed then 'not_billed'
      when p.is_rebilled then 'retry'
      when k.price_key is null then 'other_tier'
      when p.is_stream is null then 'stream_unknown'
      when p.is_stream then 'streamed'
      when p.next_ts <= p.ts + interval '24' hour then 'chained'
      when p.price_status <> 'priced' then 'unpriced'
      when not p.allowed_batch_api then 'vetoed'
      else 'touched'
    end as fate
  from {priced} as p
  left join {keys} as k on p.price_key = k.price_key
)
select
    {kept},
    own_price_key,
    own_service_tier,
    own_cache_read_tokens,
    own_cache_read_audio_tokens,
    own_cache_read_image_tokens,
    own_cache_read_video_tokens,
    read_tokens,
    write_tokens,
    now_pusd,
    fate,
    case when fate = 'touched' then moved_key else own_price_key end as price_key,
    case when fate = 'touched' then moved_tier else own_service_tier end as service_tier,
    case
      when fate = 'touched' then cast((twice_kept - twice_kept % twice_den) / twice_den as bigint)
      else own_cache_read_tokens
    end as cache_read_tokens,
    case
      when fate = 'touched' then cast((audio_kept - audio_kept % kept_den) / kept_den as bigint)
      else own_cache_read_audio_tokens
    end as cache_read_audio_tokens,
    case
      when fate = 'touched' then cast((image_kept - image_kept % kept_den) / kept_den as bigint)
      else own_cache_read_image_tokens
    end as cache_read_image_tokens,
    case
      when fate = 'touched' then cast((video_kept - video_kept % kept_den) / kept_den as bigint)
      else own_cache_read_video_tokens
    end as cache_read_video_tokens
from judged
