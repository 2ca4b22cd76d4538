"""A new periodic workflow, made of the jobs of an existing one: their text as it is, other rows, a cron. Pure."""

import re
from collections.abc import Sequence

from sooner.workflows.edits import Shards, find_matrix, with_shards
from sooner.workflows.errors import WorkflowError
from sooner.workflows.facts import Job, Workflow
from sooner.workflows.reading import read
from sooner.workflows.splices import removed, spliced, written


def new_periodic(
    source: Workflow, path: str, *, name: str, cron: str, job_id: str, config: str | None, shards: Sequence[Shards]
) -> Workflow:
    """A workflow that runs one config of a job by the clock.

    Args:
        source: Where the job is.
        path: Of the new file.
        name: Of the new workflow.
        cron: When it runs.
        job_id: The job whose matrix has the config; the jobs that it needs, and those that need it, come with it.
        config: Whose rows are kept.
        shards: What they say.

    Raises:
        WorkflowError: A job that it needs is not there, or its jobs cannot stand without the rest of the file.
    """
    newline = source.newline
    kept = _closure(source, job_id)
    blocks = [_block(source, source.jobs[one]) for one in source.jobs if one in kept]
    head = [
        f"name: {written(name)}", "", "on:", "  schedule:", f"    - cron: {written(cron)}", "  workflow_dispatch:", "",
        "concurrency:", "  group: ${{ github.workflow }}-${{ github.ref_name }}-${{ github.event_name == 'schedule' }}",
        "  cancel-in-progress: false", "", *(f"{source.slice(span)}{newline}" for span in source.settings), "jobs:", "",
    ]  # fmt: skip
    text = newline.join(head) + (newline * 2).join(block.rstrip() for block in blocks) + newline
    try:
        draft = read(text, path)
    except WorkflowError as error:  # jobs in braces, or with the alias of an anchor that stands elsewhere
        problem = f"the jobs of {job_id} make no workflow of their own ({error.problem}): write {path} by hand"
        raise WorkflowError(source.path, problem) from error
    job, matrix = find_matrix(draft, config, job_id)
    others = [i for i, row in enumerate(matrix.rows) if config is not None and row.text("config") != config]
    gone = removed(draft, [row.span for row in matrix.rows], others, matrix.style)
    draft = read(spliced(draft.text, gone), path)
    job, matrix = find_matrix(draft, config, job_id)
    return with_shards(draft, job, matrix, config, shards)


def _closure(source: Workflow, job_id: str) -> set[str]:
    """A job, all that it needs, those that need it, and what those need."""
    kept = {job_id, *(job.id for job in source.jobs.values() if job_id in job.needs)}
    while True:
        more = {need for one in kept if one in source.jobs for need in source.jobs[one].needs} - kept
        if not more:
            return kept
        if missing := sorted(more - set(source.jobs)):
            raise WorkflowError(source.path, f"a job needs {missing[0]!r}, which is not there")
        kept |= more


def _block(source: Workflow, job: Job) -> str:
    """The lines of a job, from its id on; comments behind it, indented no deeper than the id, are of the next one."""
    text = source.text
    following = [other.begin for other in source.jobs.values() if other.begin > job.begin]
    end = _line_of(text, min(following)) if following else source.jobs_span.end
    begin = _line_of(text, job.begin)
    return re.sub(rf"(\r?\n[ \t]{{,{job.begin - begin}}}#[^\r\n]*)+\Z", "", text[begin:end].rstrip())


def _line_of(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1
