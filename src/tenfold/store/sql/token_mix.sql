-- Known tokens behind the ratios of a reading, over billed rows. A row whose split is unknown is left out of that ratio
-- and counted beside it.
-- in:  the window's requests as cells (see cells_requests.sql): sums by cell no longer tell which rows were unknown
-- out: one row, in tokens
select
  cast(coalesce(sum(case when is_billed then input_tokens end), 0) as bigint) as input_tokens,
  cast(coalesce(sum(case when is_billed then output_tokens end), 0) as bigint) as output_tokens,
  cast(coalesce(sum(case when is_billed and output_tokens is not null then input_tokens end), 0) as bigint)
    as paired_input_tokens,
  cast(coalesce(sum(case when is_billed and input_tokens is not null then output_tokens end), 0) as bigint)
    as paired_output_tokens,
  cast(coalesce(sum(case when is_billed and cache_read_tokens is not null then input_tokens end), 0) as bigint)
    as read_known_tokens,
  cast(coalesce(sum(case when is_billed and input_tokens is not null then cache_read_tokens end), 0) as bigint)
    as cache_read_tokens,
  cast(coalesce(sum(case when is_billed and cache_write_tokens is not null then input_tokens end), 0) as bigint)
    as write_known_tokens,
  cast(coalesce(sum(case when is_billed and input_tokens is not null then cache_write_tokens end), 0) as bigint)
    as cache_write_tokens,
  cast(coalesce(sum(case when is_billed and reasoning_tokens is not null then output_tokens end), 0) as bigint)
    as reasoning_known_tokens,
  cast(coalesce(sum(case when is_billed and output_tokens is not null then reasoning_tokens end), 0) as bigint)
    as reasoning_tokens
from {cells}
