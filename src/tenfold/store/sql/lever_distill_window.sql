-- How long the log's billed requests span, for what is charged by time.
-- in:  lever_base
-- out: one row: first and last start, first and last day in the report zone; NULL where no request has a time
select
  min(b.ts) as first_ts,
  max(b.ts) as last_ts,
  min(b.block_day) as first_day,
  max(b.block_day) as last_day
from lever_base as b
where b.is_billed
