-- name: expected
-- A weighted quantile of the last passed attempts of each thing: each attempt counts half as much as the one @half_life
-- attempts later, and the result lies a little below the median, because what disturbs a duration (a hang, a cold cache,
-- somebody else on the machine) makes it longer.
with passed as (
    select
        @name as name,
        coalesce(variant, '') as variant,
        seconds,
        row_number() over (partition by @name, coalesce(variant, '') order by started desc nulls last, seconds) as age
    from tests
    where outcome = 'passed' and seconds >= 0 and isfinite(seconds) and @which and @condition
    qualify age <= @most
),
weighed as (
    select
        name,
        variant,
        seconds,
        sum(pow(0.5, (age - 1) / @half_life)) over (partition by name, variant order by seconds, age) as below,
        sum(pow(0.5, (age - 1) / @half_life)) over (partition by name, variant) as total
    from passed
)
select name, variant, min(seconds) from weighed where below >= @quantile * total group by name, variant
