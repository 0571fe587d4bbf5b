-- Which models a window's requests ask for, the most asked for first.
-- in:  cells: the window's requests as cells (see cells_requests.sql)
-- out: one row a model, as the log writes it; requests that a gateway answered are left out
select model, cast(count(*) as bigint) as requests
from {cells}
where not coalesce(gateway_cache_hit, false) and model is not null
group by model
order by requests desc, model
