-- The daily cube as cells: corrections (negative cells) are summed into theirs first.
-- in:  cube
-- out: as cells_grouped.sql, with the cube's dimensions
select
  coalesce(day, date '1900-01-01') as day,
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
  {sums}
from cube
where {condition}
group by all
having sum(requests) <> 0
