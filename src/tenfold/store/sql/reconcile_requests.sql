-- Requests as a provider might bill them: every one billed, with what the log says of its billing beside it, so that
-- failed calls and gateway hits have a price too.
-- in:  requests; all its columns but is_billable and gateway_cache_hit
-- out: the requests, is_billable true, gateway_cache_hit false, and billing: gateway, not_billed, repeat, failed,
--      retry or plain
select
  {columns},
  true as is_billable,
  false as gateway_cache_hit,
  case
    when coalesce(gateway_cache_hit, false) then 'gateway'
    when not coalesce(is_billable, true) then 'not_billed'
    when coalesce(array_contains(flags, 'dup_suspect'), false) then 'repeat'
    when status in ('error', 'cancelled', 'expired', 'blocked', 'timeout') then 'failed'
    when coalesce(attempt, 0) > 0 or retry_of is not null then 'retry'
    else 'plain'
  end as billing
from requests
