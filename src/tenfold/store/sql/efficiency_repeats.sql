-- Requests that ask again what was answered before: equal prompt and parameters of one model within an organisation and
-- project, after the first answer of the window that could have been kept (no failure, not cut off at its limit).
-- in:  cells: the window's requests as cells with rid; keys(price_key, provider, model); failed: statuses of failures
-- out: rid of each request after the first; requests without a time, a prompt hash or a parameter hash are in none
with kept as (
  select
    c.rid,
    row_number() over (
      partition by c.org, c.project, k.provider, k.model, c.prompt_hash, c.params_hash
      order by c.priced_at, c.request_id nulls last, c.output_tokens nulls last, c.rid
    ) as place
  from {cells} as c
  join keys as k on c.price_key = k.price_key
  where c.is_billed and c.is_dated
    and c.prompt_hash is not null and c.params_hash is not null
    and coalesce(c.status not in ({failed}), true)
    and coalesce(c.finish_reason <> 'length', true)
)
select rid
from kept
where place > 1
