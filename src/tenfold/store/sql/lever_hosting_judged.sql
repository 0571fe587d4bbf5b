-- Requests of self-hosted models whose hosting a lever changes.
-- in:  lever_base; the places: price_key, since, until (of the stretch), is_changed
-- out: rid, fate (NULL for requests that are not self-hosted by this fleet)
select
  b.rid,
  case
    when not b.is_billed then 'not_billed'
    when b.cost_pusd is null then 'unpriced'
    when p.is_changed then 'touched'
    else 'kept'
  end as fate
from lever_base as b
join {places} as p on b.price_key = p.price_key and b.ts >= p.since and b.ts < p.until
