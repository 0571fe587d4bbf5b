-- Shorter prompts and answers: every class of input loses the same share, so that what is removed counts as what it was
-- billed as. Media stay.
-- in:  the requests, with the knobs of trim: trim_group, trim_is_truncated; the ratios of the groups (trim_group, remove_num,
--      remove_den, output_num, output_den: fractions of whole numbers)
-- out: the requests, with new counts; new_trim_cut: where the prompt was cut, NULL where its length stayed
-- units: tokens, each part rounded half even; NULL parts stay NULL
with asked as (
  select
    p.*,
    g.remove_num,
    g.remove_den,
    -- how long an answer would have been that ended at its limit is unknown
    case when p.trim_is_truncated then 1 else g.output_num end as out_num,
    case when p.trim_is_truncated then 1 else g.output_den end as out_den
  from {requests} as p
  join {ratios} as g on p.trim_group = g.trim_group
),
parted as (
  select
    *,
    {removed_text} as removed_text,
    {removed_read} as removed_read,
    {removed_write} as removed_write,
    {removed_long} as removed_long,
    {output_media} as output_media,
    {answer} as answer,
    {reasoning} as reasoning
  from asked as p
),
edited as (
  select
    *,
    input_tokens - removed_text - removed_read - removed_write as cut_input,
    cache_write_tokens - removed_write as cut_write,
    cache_write_long_tokens - removed_long as cut_long,
    output_media + {capped} as cut_output
  from parted
)
select
  {columns},
  cut_input as new_input_tokens,
  cache_read_tokens - removed_read as new_cache_read_tokens,
  cut_write as new_cache_write_tokens,
  case when cut_long > coalesce(cut_write, 0) then coalesce(cut_write, 0) else cut_long end
    as new_cache_write_long_tokens,
  cut_output as new_output_tokens,
  case
    when reasoning_tokens is null then null
    when reasoning > cut_output - output_media then cut_output - output_media
    else reasoning
  end as new_reasoning_tokens,
  case when cut_input <> input_tokens then '{cut}' end as new_trim_cut
from edited
