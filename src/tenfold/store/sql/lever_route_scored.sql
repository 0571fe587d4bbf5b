-- What the evals say of each billed request: the score at the other model, what it must reach, what was measured.
-- in:  lever_base; the keys (price_key, target_key, is_same, is_latest ... see levers/route.py); the evals of the other
--      model and of the models in use, by request and by feature; the settings (one row)
-- out: one row a billed request: whether it is scored and qualifies (without evals: all do), both models' scores on the
--      request itself, measured tokens, cost and latency; is_slow: the service levels cannot hold both calls of a cascade
-- units: scores in 1e-12, costs in pUSD, times in us
with joined as (
  select
    b.rid,
    b.request_id,
    b.in_{lever} as in_where,
    b.price_status,
    b.session_id,
    b.ts,
    b.feature,
    b.cost_pusd,
    b.cache_read_tokens,
    b.ttft_ms,
    b.duration_ms,
    b.{lever}_ttft_us,
    b.{lever}_deadline_us,
    k.target_key,
    k.is_same,
    s.has_evals,
    s.is_cascade,
    r.score_e12 as weak_e12,
    o.score_e12 as strong_e12,
    coalesce(r.score_e12, f.score_e12) as score_e12,
    coalesce(b.{lever}_least_e12, o.score_e12, p.score_e12) as least_e12,
    r.cost_pusd as measured_pusd,
    r.input_tokens as measured_input,
    r.output_tokens as measured_output,
    coalesce(r.latency_us, f.latency_us) as latency_us
  from lever_base as b
  cross join {settings} as s
  join {keys} as k on b.price_key = k.price_key
  left join {evals}_by_request as r on b.request_id = r.request_id and k.target_provider = r.provider
  left join {evals}_by_feature as f on b.feature = f.feature and k.target_provider = f.provider
  left join {own}_by_request as o on b.request_id = o.request_id and k.provider = o.provider and k.model = o.model
  left join {own}_by_feature as p on b.feature = p.feature and k.provider = p.provider and k.model = p.model
  where b.is_billed
)
select
  *,
  not has_evals or coalesce(score_e12 is not null and least_e12 is not null, false) as is_scored,
  not has_evals or coalesce(score_e12 >= least_e12, false) as is_good,
  is_cascade and coalesce(
    latency_us + ttft_ms * 1000 > {lever}_ttft_us, false
  ) or is_cascade and coalesce(latency_us + duration_ms * 1000 > {lever}_deadline_us, false) as is_slow
from joined
