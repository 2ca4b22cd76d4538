-- name: rows
copy (select @columns from @table where @condition order by @time nulls first, key) to @target (@options)
