-- What each change would have saved, by cause.
-- in:  the changed requests, priced
-- out: one row per (change, provider, model, feature, cause, block where it broke): requests, sessions, tokens,
--      saved_pusd over those that have a price before and after, and how many have not
-- units: tokens; saved_pusd in pUSD
select
  change,
  provider,
  model,
  feature,
  case when change = 'hit' then cause end as cause,
  case when change = 'hit' then broken_at end as broken_at,
  case when change = 'hit' then broken_token end as broken_token,
  cast(count(*) as bigint) as turns,
  cast(count(distinct session_id) as bigint) as sessions,
  cast(sum(case change when 'hit' then lost_tokens when 'long' then band_tokens else unread_tokens end) as bigint)
    as tokens,
  cast(sum(case when change = 'long' then coalesce(cache_write_tokens, 0) else 0 end) as bigint) as written_tokens,
  cast(sum(case when was_priced and price_status = 'priced' then 0 else 1 end) as bigint) as unpriced_turns,
  cast(sum(case when was_priced and price_status = 'priced' then now_pusd - ({cost}) end) as decimal(38, 0))
    as saved_pusd
from {priced} as p
group by 1, 2, 3, 4, 5, 6, 7
order by all nulls last
