-- name: macros
-- What exports write for nothing. Trimming is the slowest thing that is done to a cell: only where there is a need.
create or replace macro blank_or(text) as
    case
        when strlen(text) <= 4 and lower(text) in ('', 'nan', 'none', 'null', 'nat', 'n/a', '\n', '<na>', '-') then null
        when ascii(text) <= 32 or ends_with(text, ' ') or ends_with(text, chr(9)) then nullif(trim(text, e' \t\r\n'), '')
        else text
    end;

-- Seconds, milli-, micro- or nanoseconds since 1970, told apart by their size; what lies before 1973 is another number.
create or replace macro time_of_number(number) as
    case
        when number is null or not isfinite(number) or abs(number) < 1e8 or abs(number) >= 2e20 then null
        when abs(number) < 1e11 then make_timestamp(round(number * 1e6)::bigint)
        when abs(number) < 1e14 then make_timestamp(round(number * 1e3)::bigint)
        when abs(number) < 1e17 then make_timestamp(round(number)::bigint)
        else make_timestamp(round(number / 1e3)::bigint)
    end;

-- What Go programs write for no time.
create or replace macro time_cell(text) as case when starts_with(text, '0001-01-01') then null else text end;
-- Compared as microseconds: in nanoseconds there is no such year.
create or replace macro moment_cell(moment) as
    case when moment::timestamp < timestamp '0001-01-02' then null else moment end;

-- Times of years with four digits: others are numbers or words that were no times, and most programs cannot show them.
create or replace macro in_calendar(moment) as
    case when moment >= timestamp '0001-01-02' and moment < timestamp '9990-01-01' then moment end;

create or replace macro has_zone(text) as
    length(text) > 10
    and regexp_matches(text, '(Z|z|UTC|GMT|\d [A-Z]{3,4}|[+-]\d\d(:?\d\d)?|[A-Z]\w+/\w+\]?)$')
    and not regexp_matches(text, ' [AP]M$');

-- A time with a zone as DuckDB reads it: git writes " +0200", Go " +0200 CEST", Java "+02:00[Europe/Berlin]", others
-- 20260721T093000Z. It knows no summer time by its initials, and takes BST for Bangladesh's.
create or replace macro zone_plain(text) as
    regexp_replace(
        regexp_replace(
            regexp_replace(
                regexp_replace(
                    regexp_replace(text, '^(\d{4})(\d\d)(\d\d)[Tt](\d\d)(\d\d)(\d\d)', '\1-\2-\3T\4:\5:\6'),
                    '[Tt](\d\d:.*?)[Zz]$', 'T\1Z'
                ),
                '\s*([+-]\d\d):?(\d\d)( [A-Z]{3,4}|\[[\w/+-]+\])$', '\1:\2'
            ),
            '\s+([+-]\d\d):?(\d\d)$', '\1:\2'
        ),
        ' (CEST|BST|EEST|WEST)$',
        case when text like '%EEST' then '+03' when text like '%CEST' then '+02' else '+01' end
    );
create or replace macro time_of_zoned(text) as make_timestamp(epoch_us(try_cast(zone_plain(text) as timestamptz)));

-- Without a digit it would take "infinity" for 1900.
create or replace macro time_of_words(text) as
    try_strptime(
        case when regexp_matches(text, '\d') then text end,
        [
            '%Y%m%d', '%Y%m%dT%H%M%S', '%Y/%m/%d %H:%M:%S', '%a %b %d %H:%M:%S %Y', '%d/%b/%Y:%H:%M:%S',
            '%b %d, %Y %H:%M:%S', '%d.%m.%Y %H:%M:%S', '%d.%m.%Y %H:%M', '%Y-%m-%d %I:%M:%S %p', '%Y-%m-%d %I:%M %p',
            '%Y-%m-%d %H:%M:%S,%g'
        ]
    );

-- What stands behind a time without a zone, DuckDB would leave out: 09:30 PM is no 09:30.
create or replace macro time_of_bare(text) as
    coalesce(case when not regexp_matches(text, '[A-Za-z]$') then try_cast(text as timestamp) end, time_of_words(text));

-- Zoned times as they are; times without a zone are UTC. Not cast as zoned ones: DuckDB 1.3 gives them the zone that the
-- row before them has named.
create or replace macro time_of(text) as
    coalesce(
        case when has_zone(text) then time_of_zoned(text) else time_of_bare(text) end,
        time_of_number(try_cast(text as double))
    );

-- The same for columns that seem to hold nothing but times with an offset or none.
create or replace macro time_of_iso(text) as make_timestamp(epoch_us(try_cast(text as timestamptz)));

create or replace macro time_of_in(text, zone) as
    case
        when has_zone(text) then time_of_zoned(text)
        else coalesce(
            make_timestamp(epoch_us(timezone(zone, time_of_bare(text)))), time_of_number(try_cast(text as double))
        )
    end;

-- Not every text in square brackets is one: "[ci all]".
create or replace macro is_json_list(text) as text like '[%]' and json_valid(text);

-- A list as text: JSON's, or its parts joined by commas, semicolons or line breaks.
create or replace macro list_of(text) as
    case
        when text is null then null
        when is_json_list(text) then coalesce(try_cast(json_transform(text, '["VARCHAR"]') as varchar[]), [text])
        else list_transform(regexp_split_to_array(text, '[,;\n]+'), lambda part: trim(part))
    end;

-- Lists of labels come as JSON.
create or replace macro plain_text(text) as
    case when is_json_list(text) then array_to_string(list_of(text), ',') else text end;

create or replace macro unit_of_column(name) as
    case
        when regexp_matches(name, '(^|_)(s|sec|secs|seconds)$') then 's'
        when regexp_matches(name, '(^|_)(ms|milliseconds)$') then 'ms'
        when regexp_matches(name, '(^|_)mib$') then 'MiB'
        when regexp_matches(name, '(^|_)(percent|pct)$') then '%'
    end;

-- name: layers
(
    select *, @following, @reason as sooner_reason
    from (select *, @naive as sooner_naive, @fields from (select @cells from @source))
)

-- name: unpivoted
(
    select * from (select * from @source)
    unpivot (sooner_cell for sooner_column in (@cells))
    where blank_or(sooner_cell) is not null
)

-- name: counted
select count(*), count(sooner_reason) from @rows

-- name: count_naive
select count(*) from @rows where sooner_naive

-- name: good_or_stop
-- Stops at the first row that must be rejected.
(select * replace (case when sooner_reason is null then @column else error('@stop') end as @column) from @rows)

-- name: words
select distinct @word from @source limit @most

-- name: sample
select @columns from @source limit 1000

-- name: rejected
-- The n-th rows of the source and what is wrong with them.
select sooner_ordinal, sooner_reason from @rows where sooner_reason is not null order by sooner_ordinal limit @most

-- name: numbered
(select row_number() over () as sooner_ordinal, * from @source)

-- name: numbered_copy
(select sooner_line::bigint as sooner_ordinal, * from @source)

-- name: good
(select * from @rows where sooner_reason is null)

-- name: commits
-- One row a file becomes one row a commit.
(
    select
        sha, any_value(repository) as repository, any_value(parents) as parents, min("time") as "time",
        any_value(author) as author, any_value(message) as message, list_sort(list_distinct(flatten(list(files)))) as files,
        any_value(branch) as branch
    from (select @columns from @rows)
    group by sha
)
