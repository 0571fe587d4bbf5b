-- A lever's change, kept where the request has a price before and after it; every other request stays as it was.
-- in:  the tried requests, priced: fate, the changed columns, own_<column> as they were
-- out: every column of requests and the marks
select
  {columns}
from {priced}
