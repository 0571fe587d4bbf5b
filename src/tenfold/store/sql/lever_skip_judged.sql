-- Which requests need no model: those that a stored answer serves, and those that a rule names.
-- in:  lever_base with its marks; lever_skip_requests; the hits (rid, filler_rid); the rule; the fee of a request
-- out: rid; fate: touched, or why not, NULL outside where; fee_pusd of every billed request in where
-- units: fee in pUSD
select
  b.rid,
  case
    when not b.in_skip then null
    when not b.is_billed then 'not_billed'
    when not b.allowed_skip then 'vetoed'
    when h.rid is null and not {rule} and r.rid is null then 'no_key'
    when h.rid is null and not {rule} then 'miss'
    when b.price_status <> 'priced' then 'unpriced'
    else 'touched'
  end as fate,
  case when b.in_skip and b.is_billed and b.allowed_skip then cast({fee} as bigint) end as fee_pusd
from lever_base as b
left join lever_skip_requests as r on b.rid = r.rid
left join {hits} as h on b.rid = h.rid
