-- The daily cube as cells: cells_grouped.sql sums them to what is asked, corrections (negative cells) into theirs.
-- in:  cube
-- out: as cells_requests.sql, as far as the cube knows, and its masks
select
  coalesce(day, date '1900-01-01') as day,
  day is not null as is_dated,
  {names}
from cube
where {condition}
