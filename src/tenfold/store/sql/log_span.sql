-- When the log begins and ends, over all requests with a time.
-- in:  requests
-- out: one row: first_ts, last_ts (naive UTC), requests (with a time)
select
  min(ts) as first_ts,
  max(ts) as last_ts,
  cast(count(ts) as bigint) as requests
from requests
