-- The rows of a FOCUS export that are usage: its charges in the standard's words and units.
-- in:  focus_lines; focus_skus (the words of each price key, entry and meter); focus_shares (what commitments a line
--      carries); focus_days (which share of a day's requests has a price); keys; the columns (export/focus.py)
-- out: one row a charge, in the order of place
-- units: as FOCUS names them; money in USD, exact to 1e-12
select
  {columns},
  l.line as place
from focus_lines as l
join focus_skus as s on l.price_key = s.price_key and l.own_entry = s.own_entry and l.meter = s.meter
join keys as k on l.price_key = k.price_key
left join focus_shares as c on l.line = c.line
left join focus_days as d on cast(l.period_start as date) = d.day
