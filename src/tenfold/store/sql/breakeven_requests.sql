-- The log's requests as another model would bill them.
-- in:  the requests, by their columns other than price_key; breakeven_keys(own_key, api_key)
-- out: requests with the other model's price key
select {columns}, keys.api_key as price_key
from requests
join breakeven_keys as keys on requests.price_key = keys.own_key
