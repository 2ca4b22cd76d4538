-- name: glob
select file from glob(@pattern) order by file

-- name: upload
copy (from read_parquet(@source)) to @target (format parquet, compression zstd, kv_metadata @metadata)
