-- Exact totals by dimension. Products are BIGINT; sums are taken first per (day, price key), where they fit, then as
-- decimals. Conservation counters come from the same pass.
-- in:  the priced view, keys(price_key, provider, model, service_tier, region)
-- out: one row a group; requests and units over billed rows, costs in pUSD over priced ones
with grouped as (
  select
    day,
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
    cast(sum(case when is_billed then uncached_input_units end) as bigint) as uncached_input_units,
    cast(sum(case when is_billed then cache_read_units end) as bigint) as cache_read_units,
    cast(sum(case when is_billed then cache_write_units end) as bigint) as cache_write_units,
    cast(sum(case when is_billed then cache_write_long_units end) as bigint) as cache_write_long_units,
    cast(sum(case when is_billed then input_audio_units end) as bigint) as input_audio_units,
    cast(sum(case when is_billed then input_image_units end) as bigint) as input_image_units,
    cast(sum(case when is_billed then input_video_units end) as bigint) as input_video_units,
    cast(sum(case when is_billed then output_units end) as bigint) as output_units,
    cast(sum(case when is_billed then reasoning_units end) as bigint) as reasoning_units,
    cast(sum(case when is_billed then output_audio_units end) as bigint) as output_audio_units,
    cast(sum(case when is_billed then output_image_units end) as bigint) as output_image_units,
    cast(sum(case when is_billed then web_search_units end) as bigint) as web_search_units,
    cast(sum(uncached_input_pusd) as decimal(38, 0)) as uncached_input_pusd,
    cast(sum(cache_read_pusd) as decimal(38, 0)) as cache_read_pusd,
    cast(sum(cache_write_pusd) as decimal(38, 0)) as cache_write_pusd,
    cast(sum(cache_write_long_pusd) as decimal(38, 0)) as cache_write_long_pusd,
    cast(sum(input_audio_pusd) as decimal(38, 0)) as input_audio_pusd,
    cast(sum(input_image_pusd) as decimal(38, 0)) as input_image_pusd,
    cast(sum(input_video_pusd) as decimal(38, 0)) as input_video_pusd,
    cast(sum(output_pusd) as decimal(38, 0)) as output_pusd,
    cast(sum(reasoning_pusd) as decimal(38, 0)) as reasoning_pusd,
    cast(sum(output_audio_pusd) as decimal(38, 0)) as output_audio_pusd,
    cast(sum(output_image_pusd) as decimal(38, 0)) as output_image_pusd,
    cast(sum(web_search_pusd) as decimal(38, 0)) as web_search_pusd
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
  cast(coalesce(sum(uncached_input_units), 0) as bigint) as uncached_input_units,
  cast(coalesce(sum(cache_read_units), 0) as bigint) as cache_read_units,
  cast(coalesce(sum(cache_write_units), 0) as bigint) as cache_write_units,
  cast(coalesce(sum(cache_write_long_units), 0) as bigint) as cache_write_long_units,
  cast(coalesce(sum(input_audio_units), 0) as bigint) as input_audio_units,
  cast(coalesce(sum(input_image_units), 0) as bigint) as input_image_units,
  cast(coalesce(sum(input_video_units), 0) as bigint) as input_video_units,
  cast(coalesce(sum(output_units), 0) as bigint) as output_units,
  cast(coalesce(sum(reasoning_units), 0) as bigint) as reasoning_units,
  cast(coalesce(sum(output_audio_units), 0) as bigint) as output_audio_units,
  cast(coalesce(sum(output_image_units), 0) as bigint) as output_image_units,
  cast(coalesce(sum(web_search_units), 0) as bigint) as web_search_units,
  coalesce(sum(uncached_input_pusd), 0) as uncached_input_pusd,
  coalesce(sum(cache_read_pusd), 0) as cache_read_pusd,
  coalesce(sum(cache_write_pusd), 0) as cache_write_pusd,
  coalesce(sum(cache_write_long_pusd), 0) as cache_write_long_pusd,
  coalesce(sum(input_audio_pusd), 0) as input_audio_pusd,
  coalesce(sum(input_image_pusd), 0) as input_image_pusd,
  coalesce(sum(input_video_pusd), 0) as input_video_pusd,
  coalesce(sum(output_pusd), 0) as output_pusd,
  coalesce(sum(reasoning_pusd), 0) as reasoning_pusd,
  coalesce(sum(output_audio_pusd), 0) as output_audio_pusd,
  coalesce(sum(output_image_pusd), 0) as output_image_pusd,
  coalesce(sum(web_search_pusd), 0) as web_search_pusd
from grouped
join keys using (price_key)
group by all
