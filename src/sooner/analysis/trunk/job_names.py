"""Names of jobs as signals have them. Pure."""

import re
from typing import Final

_MATRIX: Final = re.compile(r"^(?P<name>.*?)\((?P<inside>[^()]*)\)\s*$")
_NUMBER: Final = re.compile(r"^\d{1,6}$")
_SHARD: Final = re.compile(r"^(shard[ -]?)?\d+\s*(/|of)\s*\d+$", re.IGNORECASE)


def base_name(job: str) -> str:
    """The name of a job without shard and runner."""
    match = _MATRIX.match(job)
    if match is None:
        return job
    parts = [part.strip() for part in match["inside"].split(",")]
    for i in range(len(parts) - 1):
        if _is_shard(parts[i], parts[i + 1]):
            parts = parts[:i]  # config, shard, number of shards, runner, ...
            break
    parts = [part for part in parts if not _SHARD.match(part)]
    return f"{match['name']}({', '.join(parts)})" if parts else match["name"].strip()


def _is_shard(one: str, of: str) -> bool:
    """Whether two numbers are a shard and how many there are: no configuration of CUDA 12 and 8 devices."""
    return bool(_NUMBER.match(one) and _NUMBER.match(of)) and int(one) <= int(of)
