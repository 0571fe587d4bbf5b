-- Requests that a cache of whole answers may serve or learn from, each with what makes two of them equal.
-- in:  lever_base with its marks; lever_log; keys(price_key, provider, model); rule, admit: whether a request needs no model
--      at all, and whether its answer may be kept; key_hash, key_check: two hashes of scope, provider, model, prompt and
--      parameters
-- out: rid; key_hash, key_check (both equal where two requests are); ts; ends_at (whole microseconds, half even); stored_at
--      (NULL where its answer is not kept)
with found as (
  select
    b.rid,
    b.ts,
    {admit} as is_admitted,
    l.status,
    l.finish_reason,
    -- a time that no call can take (30 years, not a number) is not known
    case when l.duration_ms >= 0 and l.duration_ms < 1000000000000 then l.duration_ms * 1000.0 end as lasts_us,
    {key_hash} as key_hash,
    {key_check} as key_check
  from lever_base as b
  join lever_log as l on b.rid = l.rid
  join keys as k on b.price_key = k.price_key
  where b.in_skip and b.allowed_skip and b.is_billed and not {rule}
    and b.ts is not null and l.prompt_hash is not null and l.params_hash is not null
),
rounded as (
  select
    *,
    cast(
      floor(lasts_us)
        + case
          when lasts_us - floor(lasts_us) > 0.5 then 1
          when lasts_us - floor(lasts_us) = 0.5 then floor(lasts_us) % 2
          else 0
        end as bigint
    ) as whole_us
  from found
),
ended as (
  select
    *,
    ts
      + interval '1' second * cast((whole_us - whole_us % 1000000) / 1000000 as int)
      + interval '0.000001' second * cast(whole_us % 1000000 as int) as ends_at
  from rounded
)
select
  rid,
  key_hash,
  key_check,
  ts,
  ends_at,
  case when status = 'success' and finish_reason <> 'length' and is_admitted then ends_at end as stored_at
from ended
