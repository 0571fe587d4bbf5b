-- Requests summed to cells that priced.sql prices as one: alike in day, price key, context bucket, and in which counts
-- are known and above zero (the price status depends on those, and cost is linear inside such a cell).
-- in:  {cells} (cells_requests.sql); {context} is 1 above the highest threshold below the total input, else 0
-- out: one row a cell and dimension
select
  day,
  is_dated,
  {dimensions}
  price_key,
  {context} as context_tokens,
  is_billed,
  is_overlap,
  case when input_tokens is null then 1 else 0 end
    + case when output_tokens is null then 2 else 0 end as unknown_mask,
  case when cache_read_tokens > 0 then 1 else 0 end
    + case when cache_write_tokens > coalesce(cache_write_long_tokens, 0) then 2 else 0 end
    + case when cache_write_long_tokens > 0 then 4 else 0 end
    + case when input_audio_tokens > 0 then 8 else 0 end
    + case when input_image_tokens > 0 then 16 else 0 end
    + case when input_video_tokens > 0 then 32 else 0 end
    + case when reasoning_tokens > 0 then 64 else 0 end
    + case when output_audio_tokens > 0 then 128 else 0 end
    + case when output_image_tokens > 0 then 256 else 0 end
    + case when web_searches > 0 then 512 else 0 end as positive_mask,
  cast(sum(requests) as bigint) as requests,
  cast(sum(split_unknown) as bigint) as split_unknown,
  cast(sum(input_tokens) as bigint) as input_tokens,
  cast(sum(cache_read_tokens) as bigint) as cache_read_tokens,
  cast(sum(cache_write_tokens) as bigint) as cache_write_tokens,
  cast(sum(cache_write_long_tokens) as bigint) as cache_write_long_tokens,
  cast(sum(input_audio_tokens) as bigint) as input_audio_tokens,
  cast(sum(input_image_tokens) as bigint) as input_image_tokens,
  cast(sum(input_video_tokens) as bigint) as input_video_tokens,
  cast(sum(output_tokens) as bigint) as output_tokens,
  cast(sum(reasoning_tokens) as bigint) as reasoning_tokens,
  cast(sum(output_audio_tokens) as bigint) as output_audio_tokens,
  cast(sum(output_image_tokens) as bigint) as output_image_tokens,
  cast(sum(web_searches) as bigint) as web_searches
from {cells}
where {condition}
group by all
