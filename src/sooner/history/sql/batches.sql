-- name: describe
select column_name, column_type from (describe @view)

-- name: foreign_outcomes
select distinct outcome from @view where outcome is null or outcome::varchar not in (select unnest(@words)) limit 1
