-- The log as the levers meet it: its requests, and what each lever may touch.
-- in:  the requests table; what numbers its rows
-- out: rid; every column of requests; per lever in_<lever> (its where), allowed_<lever> (service levels) and what else it
--      reads off a request
select
  {row_id} as rid,
  {columns}{marks}
from requests
