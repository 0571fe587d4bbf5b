-- The cells of an export with a number each, so that two rate cards may price the very same ones.
-- in:  the cells (cells_mixed.sql)
-- out: the cell and cell_id
select
  row_number() over (order by day, price_key) as cell_id,
  *
from {cells}
