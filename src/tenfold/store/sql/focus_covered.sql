-- How many of each UTC day's billed requests an export holds.
-- in:  focus_cells priced by your own prices
-- out: one row a day; requests without a time are in none
select
  day,
  cast(sum(requests) as bigint) as requests,
  cast(sum(case when is_priced then requests else 0 end) as bigint) as priced_requests
from {own}
where is_billed and is_dated
group by all
