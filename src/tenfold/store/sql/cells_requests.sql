-- Requests as price cells: each row is a cell of its own.
-- in:  the requests table, or a lever's version of it
-- out: every column of it, and what priced.sql needs beside
select
  *,
  coalesce(cast(ts as date), date '1900-01-01') as day,
  coalesce(ts, timestamp '1900-01-01 00:00:00') as priced_at,
  ts is not null as is_dated,
  coalesce(input_tokens, 0) as context_tokens,
  coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) + coalesce(input_audio_tokens, 0)
    + coalesce(input_image_tokens, 0) + coalesce(input_video_tokens, 0)
    - coalesce(cache_read_audio_tokens, 0) - coalesce(cache_read_image_tokens, 0)
    - coalesce(cache_read_video_tokens, 0) > coalesce(input_tokens, 0)
    or coalesce(output_audio_tokens, 0) + coalesce(output_image_tokens, 0) + coalesce(output_video_tokens, 0)
      + coalesce(reasoning_tokens, 0)
      > coalesce(output_tokens, 0) as is_overlap,
  coalesce(is_billable, true) and not coalesce(gateway_cache_hit, false) as is_billed,
  cast(1 as bigint) as requests,
  cast(case when input_tokens > 0 and cache_read_tokens is null then 1 else 0 end as bigint) as split_unknown
from {requests}
where {condition}
