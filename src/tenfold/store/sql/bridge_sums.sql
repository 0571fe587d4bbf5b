-- What requests of a period counted, what they cost at their own time, and what they would have cost at one instant.
-- in:  bridge_cells.sql priced by the list of that instant; keys(price_key, provider, model, service_tier, region)
-- out: one row a group: own_is_priced, has_price (at the instant), requests, units per meter as that list cuts them,
--      own_<meter>_pusd and at_<meter>_pusd
-- units: costs in pUSD, NULL where nothing in the group has that price
with grouped as (
  select
    day,
    price_key,
    {inner_dimensions}
    own_is_priced,
    is_priced as has_price,
    sum(requests) as requests,
    {sums}
  from {priced}
  group by all
)
select
  {dimensions}
  own_is_priced,
  has_price,
  cast(sum(requests) as bigint) as requests,
  {totals}
from grouped
join keys using (price_key)
where {where}
group by all
