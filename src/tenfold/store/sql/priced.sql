-- Price cells: one row in, one row out. A cell is a request, or requests summed that are alike in day, price key,
-- context band and in which counts are known and above zero; both are priced by this one text.
-- in:  the cells (see cells_requests.sql), day_map; per meter in use what ledger/metering.py writes; the status of a
--      request without a time that no row matches
-- out: the cell, its entry, price_status, and per meter disjoint units and cost
-- units: those of the meters; costs in pUSD, NULL unless priced or known_zero
with matched as (
  select
    c.*,
    m.entry_id,
    coalesce(m.is_free, false) as is_free,
    {aparts}{rates}case
      when not c.is_billed then 'known_zero'
      when c.input_tokens is null and c.output_tokens is null then 'usage_missing'
      when c.input_tokens is null or c.output_tokens is null then 'usage_partial'
      when m.entry_id is null then case when c.is_dated then 'unpriced_model' else '{undated}' end
      when m.is_ambiguous then 'ambiguous'
      when {missing} then 'unpriced_meter'
      when m.is_free then 'known_zero'
      else 'priced'
    end as match_status
  from {cells} as c
  left join day_map as m
    on c.price_key = m.price_key
    and c.day = m.day
    and c.priced_at >= m.valid_from
    and c.priced_at < m.valid_to
    and c.context_tokens > m.above
    and c.context_tokens <= m.up_to
),
units as (
  select
    *,
    {units}
  from matched
),
metered as (
  select
    *,
    -- media priced apart may overlap cached tokens, and subsets that exceed their total overlap: nothing is guessed
    case when match_status in ('priced', 'known_zero') and is_billed
        and ({puzzle}
          or (is_overlap and {overlapping} > 0))
      then 'ambiguous' else match_status end as price_status,
    price_status in ('priced', 'known_zero') as is_priced
  from units
)
select
  *,
  {costs}
from metered
