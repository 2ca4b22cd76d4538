-- name: merge
-- All records of some files, each once, in the order of their times: readers of a time then skip most of a file.
copy (
    select * from (
        select *, row_number() over (partition by key order by @rank desc, as_of desc nulls last, hash(record)) as place
        from @source as record
        where key in (select key from repeated)
        qualify place = 1
    )
    union all by name
    select * from @source where key not in (select key from repeated)
) to @target (format parquet, compression zstd, kv_metadata @metadata)

-- name: sort
copy (select @columns from read_parquet(@source) order by @time nulls first) to @target (
    format parquet, compression zstd, kv_metadata @metadata
)

-- name: repeated
create or replace temp table repeated as
select key from @source group by key having count(*) > 1

-- name: facts
select
    count(*), min(@time)::date, max(@time)::date,
    format('{:016x}{:016x}', bit_xor(hash(key, as_of, @rank)), (sum(key) % 18446744073709551557)::ubigint)
from read_parquet(@staged)
