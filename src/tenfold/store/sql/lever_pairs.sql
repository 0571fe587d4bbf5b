-- A paired sample: for each answer of an evals file, the billed request of the log that it is another answer to.
-- in:  evals_pairs: line, request_id; lever_log, its requests priced or not
-- out: one row a line: how many billed requests have that id, and of one of them what it had
-- units: tokens
with billed as (
  select request_id, provider, model, session_id, input_tokens, output_tokens, finish_reason
  from lever_log
  where coalesce(is_billable, true) and not coalesce(gateway_cache_hit, false) and request_id is not null
)
select
  e.line,
  cast(count(b.request_id) as bigint) as requests,
  min(b.provider) as provider,
  min(b.model) as model,
  min(b.session_id) as session_id,
  min(b.input_tokens) as input_tokens,
  min(b.output_tokens) as output_tokens,
  min(b.finish_reason) as finish_reason
from evals_pairs as e
left join billed as b on e.request_id = b.request_id
group by e.line
