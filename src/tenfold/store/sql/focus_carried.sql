-- The charges of tokens that commitments may cover, by UTC day: what carries the cost of capacity.
-- in:  focus_lines; a condition over price keys and time
-- out: one row a charge, in order
-- units: tokens
select
  cast(period_start as date) as day,
  line,
  quantity
from focus_lines
where {condition} and meter in ({meters}) and quantity > 0
order by line
