-- Turns of sessions: the input of each beside that of the session's first.
-- in:  cells: the window's requests as cells with rid
-- out: one row a billed request with a session, a time and a known input: turn (1 is the first in the window), turns (of its
--      session), input_tokens, first_tokens
-- units: tokens
select
  row_number() over (partition by session_id order by priced_at, request_id nulls last, input_tokens nulls last, rid) as turn,
  count(*) over (partition by session_id) as turns,
  input_tokens,
  first_value(input_tokens) over (
    partition by session_id order by priced_at, request_id nulls last, input_tokens nulls last, rid
    rows between unbounded preceding and current row
  ) as first_tokens
from {cells}
where is_billed and is_dated and session_id is not null and input_tokens is not null
