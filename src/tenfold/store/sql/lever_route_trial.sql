-- Requests that the other model is tried on, to see whether it has a price for them and which.
-- in:  the scored requests; the settings (one row)
-- out: rid, fate (touched: all of them), and the knobs of lever_other_model, with every cached read kept
-- units: tokens, costs in pUSD
select
  s.rid,
  'touched' as fate,
  s.target_key as {lever}_target_key,
  case when not s.is_cascade then 'routed' when s.is_good then 'accepted' else 'escalated' end as {lever}_way,
  1 as {lever}_keeps,
  1 as {lever}_own_keeps,
  s.measured_input as {lever}_input,
  s.measured_output as {lever}_output,
  s.measured_pusd as {lever}_set_pusd
from {scored} as s
where s.in_where
  and not s.is_same
  and s.price_status = 'priced'
  and not s.is_slow
  and s.is_scored
  -- the others are tried for what a router is held against
  and (s.is_good or s.is_cascade or (s.weak_e12 is not null and s.strong_e12 is not null))
