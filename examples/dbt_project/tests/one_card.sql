-- Costs that were made with more than one version of the card: none, or totals mix prices.
select count(distinct card_version) as cards
from {{ ref('stg_costs') }}
having cards > 1
