-- name: settings
set memory_limit = @memory;
set temp_directory = @scratch;
set TimeZone = 'UTC';
set enable_progress_bar = false;

-- name: load
load @name;

-- name: install
install @name;
load @name;

-- name: macros
-- A row's key: the digest of everything that names the thing that it is a record of. Two rows of one key are two records
-- of one thing. 64 bits: among 100 million rows the chance that any two different things share a key is 0.03 %.
create macro key_of(text) as md5_number_lower(text);

-- Seconds since 1970, as our own rows carry times.
create macro at_epoch(seconds) as make_timestamp(round(seconds * 1e6)::bigint);

-- The part of a job's name that tells its shard, as PyTorch (`(default, 2, 5, ...)`), Buildkite and many matrices spell it.
create macro shard_of(job) as
    nullif(
        concat_ws(
            '/',
            nullif(regexp_extract(job, '(?i)(?:shard[ _-]?|[(\[, ])(\d{1,3})(?:/|, | of |-of-)(\d{1,3})\b', 1), ''),
            nullif(regexp_extract(job, '(?i)(?:shard[ _-]?|[(\[, ])(\d{1,3})(?:/|, | of |-of-)(\d{1,3})\b', 2), '')
        ),
        ''
    );

-- See `fingerprints.digest_of`, which does the same.
create macro message_digest_of(message) as
    left(
        sha256(
            trim(
                regexp_replace(
                    regexp_replace(message, '0x[0-9a-fA-F]+|\b[0-9a-f]{7,64}\b|\d+(\.\d+)?', '#', 'g'), '\s+', ' ', 'g'
                )
            )
        ),
        16
    );
