-- name: rows
read_json(@path, format = 'newline_delimited', compression = 'uncompressed', columns = @columns)

-- name: parquet
read_parquet(@path)

-- name: csv
read_csv(
    @path, auto_detect = false, header = true, columns = @columns, delim = @delimiter, quote = '"', escape = '"',
    compression = @compression, null_padding = false, strict_mode = true, ignore_errors = false,
    max_line_size = 16777216, buffer_size = 33554432
)

-- name: json_lines
read_json(
    @path, format = 'newline_delimited', columns = @columns, compression = @compression, ignore_errors = false
)
