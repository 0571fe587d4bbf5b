-- The daily cube as price cells, and single requests for the (price key, day) pairs whose rates change inside the day.
-- in:  cube, cut_days(price_key, day), cells_requests
-- out: one row a cell; corrections (negative cells) are summed into theirs first
with summed as (
  select
    day,
    org,
    project,
    team,
    feature,
    environment,
    source_format,
    price_key,
    context_tokens,
    is_billed,
    known_mask,
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
  group by all
  having sum(requests) <> 0
)
select
  coalesce(day, date '1970-01-01') as day,
  coalesce(cast(day as timestamp), timestamp '1970-01-01 00:00:00') as priced_at,
  day is not null as is_dated,
  org,
  project,
  team,
  feature,
  environment,
  source_format,
  price_key,
  context_tokens,
  is_billed,
  requests,
  split_unknown,
  input_tokens,
  cache_read_tokens,
  cache_write_tokens,
  cache_write_long_tokens,
  input_audio_tokens,
  input_image_tokens,
  input_video_tokens,
  output_tokens,
  reasoning_tokens,
  output_audio_tokens,
  output_image_tokens,
  web_searches
from summed
where not exists (
  select 1 from cut_days where cut_days.price_key = summed.price_key and cut_days.day = summed.day
)
union all
select
  day,
  priced_at,
  is_dated,
  org,
  project,
  team,
  feature,
  environment,
  source_format,
  price_key,
  context_tokens,
  is_billed,
  requests,
  split_unknown,
  input_tokens,
  cache_read_tokens,
  cache_write_tokens,
  cache_write_long_tokens,
  input_audio_tokens,
  input_image_tokens,
  input_video_tokens,
  output_tokens,
  reasoning_tokens,
  output_audio_tokens,
  output_image_tokens,
  web_searches
from cells_requests
where exists (
  select 1 from cut_days where cut_days.price_key = cells_requests.price_key and cut_days.day = cells_requests.day
)
