-- name: latest
-- Of each test case, for each number of devices, pretended or not, and each label of a runner that it ran on, the last
-- execution. What the test's own record does not tell is taken from its job's, of a job that ran again from the attempt
-- that it ran in: the last one that had started by then. Sooner's own records tell all devices that a test held: none
-- means none, as those that its job has are hidden from it. Ranks are told by measures about the test.
with attempts as (
    select
        repository, run, job, runner, branch, nullif(devices, 0) as devices, started, @jobs_time as told, attempt, key,
        coalesce(started, timestamp '1970-01-01') as since
    from jobs
    qualify started is not null or count(started) over (partition by repository, run, job) = 0
),
ran_in as (
    select
        * exclude (since),
        case when row_number() over attempts_of = 1 then timestamp '-infinity' else since end as since,
        coalesce(lead(since) over attempts_of, timestamp 'infinity') as until
    from attempts
    window attempts_of as (partition by repository, run, job order by since, told nulls first, attempt, key)
),
ranked as (
    select repository, run, job, subject, try_cast(trunc(value) as bigint) as ranks
    from measures
    where name in ('ranks', 'world_size')
    qualify row_number() over (partition by repository, run, job, subject order by "at" desc nulls last, attempt desc, key) = 1
),
ran as (
    select
        t.node_id, coalesce(t.started, j.started, t.as_of) as began, t.run, t.job, j.runner, t.worker, t."commit", t.outcome,
        coalesce(
            nullif(len(t.devices), 0),
            case when regexp_matches(t.source, '^(pytest$|sooner:)') and t.outcome not like 'skipped%' then 0 end,
            j.devices
        ) as devices,
        m.ranks, t.key,
        coalesce(regexp_matches(t.devices[1], '^(virtual|cpu):'), false) as pretended
    from tests t
    left join ran_in j
        on t.run is not distinct from j.run
        and t.job is not distinct from j.job
        and t.repository is not distinct from j.repository
        and coalesce(t.started, timestamp '9999-12-31') >= j.since
        and coalesce(t.started, timestamp '9999-12-31') < j.until
    left join ranked m
        on t.run is not distinct from m.run
        and t.job is not distinct from m.job
        and t.repository is not distinct from m.repository
        and t.node_id = m.subject
    where t.node_id is not null and t.kind <> 'summary' and t.outcome in (select unnest(@outcomes))
        and ($repository = '' or t.repository = $repository)
        and ($branch = '' or coalesce(t.branch, j.branch) = $branch)
)
select
    node_id, max(epoch_us(began)) / 1e6, devices, coalesce(runner, ''), pretended,
    unnest(max_by(
        {
            'run': coalesce(run, ''), 'job': coalesce(job, ''), 'worker': coalesce(worker, ''),
            'commit': coalesce("commit", ''), 'outcome': outcome, 'ranks': ranks
        },
        (began, key)
    ))
from ran
where began <= at_epoch(@until) and ranks is distinct from 0
group by node_id, devices, runner, pretended
order by node_id, 2, devices

-- name: cases
select distinct node_id
from tests
where node_id is not null and kind <> 'summary' and ($repository = '' or repository = $repository)
order by node_id
