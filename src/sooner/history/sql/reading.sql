-- name: any_shadow
select count(*) > 0 from job_records where shadow is not null

-- name: hide_shadows
-- A placeholder is hidden by a real job of its name in the same attempt; a copy that a re-run made, by the job that ran.
create or replace temp table hidden_jobs as
select placeholder.key
from job_records placeholder join job_records actual
    on placeholder.run = actual.run
    and placeholder.repository is not distinct from actual.repository
    and placeholder.job = actual.job
    and placeholder.attempt = actual.attempt
where placeholder.shadow = 'placeholder' and actual.shadow is null
union
select copy.key
from job_records copy join job_records actual
    on copy.run = actual.run
    and copy.repository is not distinct from actual.repository
    and copy.job = actual.job
    and copy.started = actual.started
where copy.shadow = 'copied' and actual.shadow is null

-- name: hide_nothing
create or replace temp table hidden_jobs (key ubigint)

-- name: jobs
create or replace temp view jobs as
select * from job_records where key not in (select key from hidden_jobs)

-- name: jobs_of_runs
-- What a job's own record does not tell is taken from the record of its run. A job that seems to run although its run
-- has ended never got to its end's record: it was not run, or it was lost.
create or replace temp view jobs as
select j.* replace (
    coalesce(j.workflow, r.workflow) as workflow,
    coalesce(j."commit", r."commit") as "commit",
    coalesce(j.parent, r.parent) as parent,
    coalesce(j.branch, r.branch) as branch,
    coalesce(j.pull_request, r.pull_request) as pull_request,
    coalesce(j.event, r.event) as event,
    coalesce(r.created, j.run_created) as run_created,
    case
        when j.outcome <> 'running' or r.outcome is null or r.outcome in ('running', 'not_run') then j.outcome
        when j.started is null then 'not_run'
        else 'infrastructure'
    end as outcome
)
from job_records j left join runs r
    on j.run = r.run and j.repository is not distinct from r.repository and coalesce(j.attempt, 1) = r.attempt
where j.key not in (select key from hidden_jobs)

-- name: changes
create or replace temp view changes as
select repository, sha as "commit", unnest(files) as file, "time" from commits

-- name: rows
select @columns from @table where @condition order by @order

-- name: dictionary
-- An empty text is one that nobody told.
create or replace temp table @name as
select value, (row_number() over (order by value) - 1)::integer as code
from (select distinct @column as value from @table where @condition) where value <> ''

-- name: dictionary_names
select value from @name order by code

-- name: repositories
select distinct repository from @table as t where @condition and repository is not null order by repository

-- name: coded
select @columns from @table as t @joins where @condition @order

-- name: coded_join
left join @name on t.@column = @name.value

-- name: commits_in_order
-- Commits that are known as such, and those that only jobs tell of.
with known as (
    select sha, coalesce(parents, []) as parents, "time" from commits where @commits_condition
),
tested as (
    select
        "commit" as sha,
        list_filter([any_value(parent)], lambda parent: parent is not null) as parents,
        min(@time) as "time"
    from jobs
    where "commit" is not null and @jobs_condition
    group by "commit"
)
select
    coalesce(known.sha, tested.sha),
    case when known.sha is null or len(known.parents) = 0 then coalesce(tested.parents, []) else known.parents end,
    epoch_us(coalesce(known."time", tested."time"))
from known full join tested using (sha)
