-- The charges of a FOCUS export: a group (focus_groups.sql) cut into its meters, numbered in their final order.
-- in:  one SELECT a meter over focus_groups, put together (export/focus_lines.py)
-- out: one row a charge: stretch, owners, price key, meter, quantity, rates and costs; requests are on one meter of each group
-- units: quantity in the meter's own, rates in pUSD a unit, costs in pUSD
select
  row_number() over (
    order by period_start, period_end, price_key, meter_number, {dimensions}
      own_entry nulls last, list_entry nulls last, has_list
  ) as line,
  *
from ({meters}) as charges
