-- name: expected
-- A weighted quantile of the last passed attempts of each thing: each attempt counts half as much as the one @half_life
-- attempts later, and the result lies a little below the median, because what disturbs a duration (a hang, a cold cache,
-- somebody else on the machine) makes it longer.
with passed as (
    select
        @name as name,
        coalesce(variant, '') as variant,
        max_by(seconds, coalesce(started, as_of, timestamp '1970-01-01'), @most) as latest
    from tests
    where outcome = 'passed' and seconds >= 0 and isfinite(seconds) and @which and @condition
    group by all
),
aged as (
    select name, variant, unnest(latest) as seconds, generate_subscripts(latest, 1) as age from passed
),
weighed as (
    select
        name,
        variant,
        seconds,
        sum(pow(0.5, (age - 1) / @half_life)) over (partition by name, variant order by seconds, age) as below,
        sum(pow(0.5, (age - 1) / @half_life)) over (partition by name, variant) as total
    from aged
)
select name, variant, min(seconds) from weighed where below >= @quantile * total group by name, variant
