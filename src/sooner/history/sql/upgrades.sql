-- name: jobs_0
-- Version 0, before the first release: times were seconds since 1970, no keys, `label` for the runner.
(
    select key_of(concat_ws(chr(31), @key_parts)) as key, *
    from (
        select
            repository, workflow, run, attempt, job, null::varchar as job_id, null::varchar as shard, "commit",
            null::varchar as parent, branch, pull_request, event, null::timestamp as run_created,
            at_epoch(created_at) as created, null::timestamp as queued, at_epoch(started_at) as started,
            at_epoch(completed_at) as completed, null::timestamp as closed, label as runner,
            null::varchar as runner_name, null::bigint as devices, outcome, null::varchar as failure_line,
            null::varchar as shadow, source, at_epoch(coalesce(completed_at, started_at, created_at)) as as_of
        from read_parquet(@files)
    )
)

-- name: tests_0
(
    select key_of(concat_ws(chr(31), @key_parts)) as key, *
    from (
        select
            repository, run, null::varchar as job, unit, test as node_id, variant, attempt,
            case when test is null then 'unit' else 'case' end as kind, outcome, duration_s as seconds,
            at_epoch(started_at) as started, string_split(devices, ',') as devices, null::double as peak_memory_mib,
            null::varchar as worker, message, null::varchar as message_digest, null::bigint as exit_code,
            null::bigint as signal, null::varchar as "commit", null::varchar as branch, source,
            at_epoch(started_at + coalesce(duration_s, 0)) as as_of
        from read_parquet(@files)
    )
)
