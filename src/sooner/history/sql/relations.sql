-- name: files
read_parquet(@files)

-- name: empty
(select @columns where false)

-- name: repeated
-- Keys of which there is more than one record, found among files that nobody has looked at and between them and the rest.
select key from @fresh group by key having count(*) > 1
union
select key from @fresh where key in (select key from @rest)

-- name: hold
create or replace temp table @name (key ubigint)

-- name: fill
insert into @name select unnest(@keys)

-- name: view
create or replace temp view @name as select * from @relation

-- name: view_of_best
-- One record a key: the settled one, else the latest. Only keys that are known to have several are sorted.
create or replace temp view @name as
select * from @relation where key not in (select key from @repeated)
union all by name
select * exclude (place) from (
    select *, row_number() over (partition by key order by @rank desc, as_of desc nulls last, hash(record)) as place
    from @relation as record
    where key in (select key from @repeated)
) where place = 1
