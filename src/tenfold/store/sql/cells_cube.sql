-- The daily cube as cells: corrections (negative cells) are summed into theirs first.
-- in:  cube
-- out: as cells_grouped.sql, with the cube's dimensions
select
  coalesce(day, date '1970-01-01') as day,
  day is not null as is_dated,
  org, project, team, feature, environment, source_format,
  price_key,
  context_tokens,
  is_billed,
  is_overlap,
  unknown_mask,
  positive_mask,
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
from cube
where {condition}
group by all
having sum(requests) <> 0
