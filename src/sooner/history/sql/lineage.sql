-- name: lives
-- When a job was seen, without the first and the last hundredth: stray runs of old branches come years later.
with seen as (
    select job, epoch_us(coalesce(started, queued, created, completed)) / 1e6 as seconds
    from jobs
    where $repository = '' or repository = $repository
)
select job, quantile_disc(seconds, 0.01), quantile_disc(seconds, 0.99), count(*)
from seen
where seconds is not null
group by job
order by 2, 1
