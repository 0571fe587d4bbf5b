-- Price cells: one row in, one row out. A cell is a request, or requests summed that are alike in day, price key,
-- context band and in which counts are known and above zero; both are priced by this one text.
-- in:  the cells (see cells_requests.sql), day_map; the status of a request without a time that no row matches
-- out: the cell, its entry, price_status, and per meter disjoint units and cost
-- units: tokens, calls; costs in pUSD, NULL unless priced or known_zero
with matched as (
  select
    c.*,
    m.entry_id,
    coalesce(m.is_free, false) as is_free,
    case when m.rate_input_image is null then 0 else coalesce(c.input_image_tokens, 0) end as image_apart,
    case when m.rate_input_video is null then 0 else coalesce(c.input_video_tokens, 0) end as video_apart,
    case when m.is_audio_apart or m.rate_input_audio is null then coalesce(c.input_audio_tokens, 0) else 0 end
      as audio_apart,
    case when m.rate_reasoning is null then 0 else coalesce(c.reasoning_tokens, 0) end as reasoning_apart,
    m.rate_uncached_input, m.rate_cache_read, m.rate_cache_write, m.rate_cache_write_long,
    m.rate_input_audio, m.rate_input_image, m.rate_input_video,
    m.rate_output, m.rate_reasoning, m.rate_output_audio, m.rate_output_image, m.rate_web_search,
    case
      when not c.is_billed then 'known_zero'
      when c.input_tokens is null and c.output_tokens is null then 'usage_missing'
      when c.input_tokens is null or c.output_tokens is null then 'usage_partial'
      when m.entry_id is null then case when c.is_dated then 'unpriced_model' else '{undated}' end
      when m.is_ambiguous then 'ambiguous'
      when (m.rate_cache_read is null and c.cache_read_tokens > 0)
        or (m.rate_cache_write is null and c.cache_write_tokens > coalesce(c.cache_write_long_tokens, 0))
        or (m.rate_cache_write_long is null and c.cache_write_long_tokens > 0)
        or (m.rate_input_audio is null and c.input_audio_tokens > 0)
        or (m.rate_output_audio is null and c.output_audio_tokens > 0)
        or (m.rate_output_image is null and c.output_image_tokens > 0)
        or (m.rate_web_search is null and c.web_searches > 0) then 'unpriced_meter'
      when m.is_free then 'known_zero'
      else 'priced'
    end as match_status
  from {cells} as c
  left join day_map as m
    on c.price_key = m.price_key
    and c.day = m.day
    and c.priced_at >= m.valid_from
    and c.priced_at < m.valid_to
    and c.context_tokens > m.above
    and c.context_tokens <= m.up_to
),
units as (
  select
    *,
    input_tokens - coalesce(cache_read_tokens, 0) - coalesce(cache_write_tokens, 0)
      - image_apart - video_apart - audio_apart as uncached_input_units,
    coalesce(cache_read_tokens, 0) as cache_read_units,
    coalesce(cache_write_tokens, 0) - coalesce(cache_write_long_tokens, 0) as cache_write_units,
    coalesce(cache_write_long_tokens, 0) as cache_write_long_units,
    audio_apart as input_audio_units,
    image_apart as input_image_units,
    video_apart as input_video_units,
    output_tokens - reasoning_apart - coalesce(output_audio_tokens, 0) - coalesce(output_image_tokens, 0)
      as output_units,
    reasoning_apart as reasoning_units,
    coalesce(output_audio_tokens, 0) as output_audio_units,
    coalesce(output_image_tokens, 0) as output_image_units,
    coalesce(web_searches, 0) as web_search_units
  from matched
),
metered as (
  select
    *,
    -- media priced apart may overlap cached tokens, and subsets that exceed their total overlap: nothing is guessed
    case when match_status in ('priced', 'known_zero') and is_billed
        and ((image_apart + video_apart + audio_apart > 0 and (cache_read_tokens > 0 or cache_write_tokens > 0))
          or (is_overlap and image_apart + video_apart + audio_apart + reasoning_apart
            + coalesce(output_audio_tokens, 0) + coalesce(output_image_tokens, 0) > 0))
      then 'ambiguous' else match_status end as price_status,
    price_status in ('priced', 'known_zero') as is_priced
  from units
)
select
  *,
  case when price_status = 'priced' then uncached_input_units * coalesce(rate_uncached_input, 0)
    when is_priced then 0 end as uncached_input_pusd,
  case when price_status = 'priced' then cache_read_units * coalesce(rate_cache_read, 0)
    when is_priced then 0 end as cache_read_pusd,
  case when price_status = 'priced' then cache_write_units * coalesce(rate_cache_write, 0)
    when is_priced then 0 end as cache_write_pusd,
  case when price_status = 'priced' then cache_write_long_units * coalesce(rate_cache_write_long, 0)
    when is_priced then 0 end as cache_write_long_pusd,
  case when price_status = 'priced' then input_audio_units * coalesce(rate_input_audio, 0)
    when is_priced then 0 end as input_audio_pusd,
  case when price_status = 'priced' then input_image_units * coalesce(rate_input_image, 0)
    when is_priced then 0 end as input_image_pusd,
  case when price_status = 'priced' then input_video_units * coalesce(rate_input_video, 0)
    when is_priced then 0 end as input_video_pusd,
  case when price_status = 'priced' then output_units * coalesce(rate_output, 0)
    when is_priced then 0 end as output_pusd,
  case when price_status = 'priced' then reasoning_units * coalesce(rate_reasoning, 0)
    when is_priced then 0 end as reasoning_pusd,
  case when price_status = 'priced' then output_audio_units * coalesce(rate_output_audio, 0)
    when is_priced then 0 end as output_audio_pusd,
  case when price_status = 'priced' then output_image_units * coalesce(rate_output_image, 0)
    when is_priced then 0 end as output_image_pusd,
  case when price_status = 'priced' then web_search_units * coalesce(rate_web_search, 0)
    when is_priced then 0 end as web_search_pusd
from metered
