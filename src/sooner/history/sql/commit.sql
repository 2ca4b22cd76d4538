-- name: stage
-- Rows of any source, typed, under their keys, as a Parquet file: already what will be published if all of them are new.
copy (
    select key_of(concat_ws(chr(31), @key_parts)) as key, *
    from (select @columns from @source)
) to @target (format parquet, compression zstd, kv_metadata @metadata)

-- name: count
select count(*) from read_parquet(@staged)

-- name: facts
-- How many rows, from which day to which, and a digest of their content that does not depend on their order.
select
    count(*),
    min(@time)::date,
    max(@time)::date,
    format('{:016x}{:016x}', bit_xor(hash(key, as_of, @rank)), (sum(key) % 18446744073709551557)::ubigint)
from read_parquet(@staged)

-- name: scopes
select list(scope) from (select distinct @scope as scope from read_parquet(@staged) limit @limit)

-- name: repeated
create or replace temp table repeated as
select key from read_parquet(@staged) group by key having count(*) > 1

-- name: count_repeated
select count(*) from repeated

-- name: recorded
-- What the history holds already of the staged keys.
create or replace temp table recorded as
select key, (@rank)::tinyint as rank, as_of, @outcome as told
from @existing
where @in_scope and key in (select key from read_parquet(@staged))

-- name: best_recorded
-- The same where a key may have several records: of each, the one that counts.
create or replace temp table recorded as
select key, max(@rank)::tinyint as rank, max(as_of) as as_of, max_by(@outcome, (@rank, as_of)) as told
from @existing
where @in_scope and key in (select key from read_parquet(@staged))
group by key

-- name: count_recorded
select count(*), count(*) filter (where rank < @best) from recorded

-- name: contradicted
-- Things of which the history holds as good a record already, but with another end.
select count(*)
from (select key, @rank as own_rank, @outcome as own from read_parquet(@staged)) join recorded using (key)
where own_rank > 0 and own_rank = rank and own <> told

-- name: number_attempts
-- The same name several times in one source: further attempts, in the order of the source.
copy (
    with repeats as (@repeats),
    numbered as (
        select * exclude (place) replace (row_number() over (partition by key order by place) as attempt) from repeats
    )
    select * from read_parquet(@staged) where key not in (select key from repeated)
    union all by name
    select key_of(concat_ws(chr(31), @key_parts)) as key, * exclude (key) from numbered
) to @target (format parquet, compression zstd, kv_metadata @metadata)

-- name: all_repeats
select * exclude (file_row_number), file_row_number as place
from read_parquet(@staged, file_row_number = true)
where key in (select key from repeated)

-- name: different_repeats
-- That something waited or ran is no attempt of its own beside its end.
select * exclude (file_row_number), min(file_row_number) as place
from (
    select * from read_parquet(@staged, file_row_number = true)
    where key in (select key from repeated)
    qualify @rank = max(@rank) over (partition by key)
)
group by all

-- name: keep_new
-- Of what is staged: what the history does not hold, or holds a lesser record of; one record a key.
copy (
    with ranked as (
        select *, @rank as own_rank, row_number() over (
            partition by key order by @rank desc, as_of desc nulls last, file_row_number
        ) as place
        from read_parquet(@staged, file_row_number = true)
        where key in (select key from repeated)
    ),
    staged as (
        select *, @rank as own_rank from read_parquet(@staged) where key not in (select key from repeated)
        union all by name
        select * exclude (place, file_row_number) from ranked where place = 1
    )
    select staged.* exclude (own_rank)
    from staged left join recorded using (key)
    where recorded.key is null
        or own_rank > recorded.rank
        or (
            own_rank = 0 and recorded.rank = 0 and staged.as_of > recorded.as_of
            and not (@outcome = 'not_run' and recorded.told = 'not_run') -- that nothing ran, nobody needs to know twice
        )
) to @target (format parquet, compression zstd, kv_metadata @metadata)

-- name: superseding
-- Keys that now have a second, better record.
select coalesce(list(key), []) from read_parquet(@staged) where key in (select key from recorded)
