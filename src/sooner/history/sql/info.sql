-- name: table
select count(*), epoch_us(min(@time)) / 1e6, epoch_us(max(@time)) / 1e6 from @table
