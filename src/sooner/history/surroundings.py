"""What the environment of a CI job tells about it: repository, commit, branch, run, job."""

from collections.abc import Mapping, Sequence
from typing import Final

_VARIABLES: Final[Mapping[str, Sequence[str]]] = {
    "repository": ("GITHUB_REPOSITORY", "CI_PROJECT_PATH", "BUILDKITE_PIPELINE_SLUG", "CIRCLE_PROJECT_REPONAME"),
    "commit": ("GITHUB_SHA", "CI_COMMIT_SHA", "BUILDKITE_COMMIT", "GIT_COMMIT", "CIRCLE_SHA1", "BUILD_SOURCEVERSION"),
    "branch": (
        "GITHUB_HEAD_REF",
        "GITHUB_REF_NAME",
        "CI_COMMIT_REF_NAME",
        "BUILDKITE_BRANCH",
        "GIT_BRANCH",
        "CIRCLE_BRANCH",
    ),
    "job": ("GITHUB_JOB", "CI_JOB_NAME", "BUILDKITE_LABEL", "JOB_NAME", "CIRCLE_JOB"),
}
"""GitHub Actions, GitLab, Buildkite, Jenkins, CircleCI, Azure Pipelines: as their documentation names them."""


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    """What is told, by field of the history; empty outside of CI."""
    found = {}
    for field, names in _VARIABLES.items():
        value = next((environment[name] for name in names if environment.get(name)), "")
        if value:
            found[field] = value
    return found
