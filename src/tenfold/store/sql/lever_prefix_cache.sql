-- The same tokens without any caching: all input uncached.
-- in:  the requests as priced now
-- out: columns of requests with the cached counts set to 0 (NULL stays NULL), what they were, and fate: touched, or why
--      not; NULL outside where
-- units: tokens
with judged as (
  select
    {columns},
    p.cache_read_tokens as own_cache_read_tokens,
    p.cache_write_tokens as own_cache_write_tokens,
    p.cache_write_long_tokens as own_cache_write_long_tokens,
    p.cache_read_audio_tokens as own_cache_read_audio_tokens,
    p.cache_read_image_tokens as own_cache_read_image_tokens,
    p.cache_read_video_tokens as own_cache_read_video_tokens,
    p.cache_read_tokens as read_tokens,
    p.cache_write_tokens as write_tokens,
    {cost} as now_pusd,
    case
      when not p.in_prefix_cache then null
      when not p.is_billed then 'not_billed'
      when p.price_status <> 'priced' then 'unpriced'
      when p.cache_read_tokens is null and p.cache_write_tokens is null then 'split_unknown'
      when coalesce(p.cache_read_tokens, 0) = 0 and coalesce(p.cache_write_tokens, 0) = 0 then 'not_cached'
      else 'touched'
    end as fate
  from {priced} as p
)
select
    {kept},
    own_cache_read_tokens,
    own_cache_write_tokens,
    own_cache_write_long_tokens,
    own_cache_read_audio_tokens,
    own_cache_read_image_tokens,
    own_cache_read_video_tokens,
    read_tokens,
    write_tokens,
    now_pusd,
    fate,
    case when fate = 'touched' then own_cache_read_tokens * 0 else own_cache_read_tokens end as cache_read_tokens,
    case when fate = 'touched' then own_cache_write_tokens * 0 else own_cache_write_tokens end as cache_write_tokens,
    case when fate = 'touched' then own_cache_write_long_tokens * 0 else own_cache_write_long_tokens end
      as cache_write_long_tokens,
    case when fate = 'touched' then own_cache_read_audio_tokens * 0 else own_cache_read_audio_tokens end
      as cache_read_audio_tokens,
    case when fate = 'touched' then own_cache_read_image_tokens * 0 else own_cache_read_image_tokens end
      as cache_read_image_tokens,
    case when fate = 'touched' then own_cache_read_video_tokens * 0 else own_cache_read_video_tokens end
      as cache_read_video_tokens
from judged
