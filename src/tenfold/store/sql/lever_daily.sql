-- The bill of the window by day, and by group of users.
-- in:  lever_base
-- out: one row a block_day (NULL for requests without a time) and one a user_bucket, the other of the two NULL; billed
--      requests, those without a price, cost of the others
-- units: costs in pUSD
select
  b.block_day,
  b.user_bucket,
  grouping(b.user_bucket) as is_day,
  cast(count(*) as bigint) as billed_requests,
  cast(sum(case when b.cost_pusd is null then 1 else 0 end) as bigint) as unpriced_requests,
  coalesce(sum(cast(b.cost_pusd as decimal(38, 0))), 0) as cost_pusd
from lever_base as b
where b.is_billed
group by grouping sets ((b.block_day), (b.user_bucket))
