-- Requests at the rates of another hosting.
-- in:  the requests; the moves: price_key, since, until (of the stretch), moved_key
-- out: the requests, with the key of their rates there
select v.*, coalesce(m.moved_key, v.price_key) as new_price_key
from {requests} as v
left join {moves} as m on v.price_key = m.price_key and v.ts >= m.since and v.ts < m.until
