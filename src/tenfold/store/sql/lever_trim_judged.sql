-- Which prompts and answers are to be shorter.
-- in:  lever_base; the features that the paired sample names: feature, trim_group (0 is everything else)
-- out: rid, and fate: touched, or why not; NULL outside where; the group whose ratios hold, whether the answer ended at its
--      limit, and where the prompt is cut (nowhere yet)
select
  b.rid,
  case
    when not b.in_trim then null
    when not b.is_billed then 'not_billed'
    when b.price_status <> 'priced' then 'unpriced'
    when not b.allowed_trim then 'vetoed'
    else 'touched'
  end as fate,
  coalesce(g.trim_group, 0) as trim_group,
  coalesce(b.finish_reason = 'length', false) as trim_is_truncated,
  cast(null as string) as trim_cut
from lever_base as b
left join {groups} as g on b.feature = g.feature
