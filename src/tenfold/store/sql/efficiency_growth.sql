-- How the input grows with the turn of a session.
-- in:  efficiency_turns; turn: the turn, or the first of a range of turns, as SQL
-- out: one row a turn or range: requests, their input, and the input of their sessions' first turns
-- units: tokens
select
  {turn} as turn,
  cast(count(*) as bigint) as requests,
  cast(sum(input_tokens) as bigint) as input_tokens,
  cast(sum(first_tokens) as bigint) as first_tokens
from efficiency_turns
group by all
