-- The same tokens without any caching: all input uncached.
-- in:  the requests
-- out: the requests, the cached counts 0 (NULL stays NULL)
-- units: tokens
select
  p.*,
  {uncached}
from {requests} as p
