"""What a sweep saw, laid over what the source says."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from sooner.plan.needs.facts import SIZES, AtSize, Confidence, Evidence, TestNeeds, Verdict, derived, described


class Sweep(Struct, frozen=True, kw_only=True):
    """What a sweep saw at one size.

    Args:
        tests: Node id -> (`run` | `skip` | `fail` | `unknown`, reason).
        files: File -> `skip` | `fail`, for those that were not collected.
        workers: Node id -> processes that the test started; a dry sweep knows none.
        devices: Node id -> devices that it was seen to touch; only where some were seen.
        complete: Whether bodies were run, so that a failure is the test's own.
    """

    tests: dict[str, tuple[str, str]]
    files: dict[str, str] = {}
    workers: dict[str, int] = {}
    devices: dict[str, int] = {}
    complete: bool = False


def merged(static: Sequence[TestNeeds], sweeps: Mapping[int, Sweep]) -> list[TestNeeds]:
    """The static needs, corrected where a sweep knows better; tests that only the sweep found are added.

    - A sweep that collected a file knows which ids exist. An entry that stood for all cases of a function is replaced
      by its cases.
    - In a dry sweep a skip is believed where the source left doubt, or where the test is not skipped with more devices,
      and a failure only as a failed collection: a body that is cut down to its guards can fail for reasons of its own.
      Of a file that it collects with no number of devices it says nothing: a package is missing, not a device.
    - A complete sweep is believed in everything.
    """
    ids = _ids(sweeps)
    unseen = _unseen({each.path for each in static}, sweeps)
    known = {each.nodeid: each for each in static}
    result: list[TestNeeds] = []
    taken: set[str] = set()
    for each in static:
        if each.path in unseen:
            taken.add(each.nodeid)
            doubt = Confidence.MEDIUM if each.confidence is Confidence.HIGH else each.confidence
            result.append(msgspec.structs.replace(each, confidence=doubt))
            continue
        cases = (
            [each.nodeid] if each.nodeid in ids else [nodeid for nodeid in ids if nodeid.startswith(f"{each.nodeid}[")]
        )
        for nodeid in cases:
            if nodeid not in taken and (nodeid == each.nodeid or nodeid not in known):
                taken.add(nodeid)
                result.append(_corrected(each, nodeid, sweeps))
        if not cases and _was_collected(each.path, sweeps):
            continue  # pytest does not know it: no test
        if not cases:
            taken.add(each.nodeid)
            result.append(_corrected(each, each.nodeid, sweeps))
    result += [_found(nodeid, sweeps) for nodeid in ids if nodeid not in taken]
    return result


def _unseen(paths: set[str], sweeps: Mapping[int, Sweep]) -> set[str]:
    """Files of which a dry sweep has seen nothing with any number of devices."""
    if any(sweep.complete for sweep in sweeps.values()):
        return set()
    seen = {nodeid.partition("::")[0] for sweep in sweeps.values() for nodeid in sweep.tests}
    skipped = {path for sweep in sweeps.values() for path, outcome in sweep.files.items() if outcome == "skip"}
    return paths - seen - skipped


def _ids(sweeps: Mapping[int, Sweep]) -> dict[str, None]:
    return {nodeid: None for size in sorted(sweeps, reverse=True) for nodeid in sweeps[size].tests}


def _was_collected(path: str, sweeps: Mapping[int, Sweep]) -> bool:
    return any(nodeid.startswith(f"{path}::") for sweep in sweeps.values() for nodeid in sweep.tests)


def _corrected(each: TestNeeds, nodeid: str, sweeps: Mapping[int, Sweep]) -> TestNeeds:
    at: dict[int, AtSize] = {}
    for size in SIZES:
        name = str(size)
        before = AtSize(
            verdict=each.profile[name],
            ranks=each.ranks.get(name),
            devices=each.devices.get(name, 0),
            backends=tuple(each.backend),
            reason=each.reasons.get(name, ""),
            vacuous=size in each.vacuous,
        )
        at[size] = _seen(before, nodeid, each, sweeps, size) if size in sweeps else before
    vacuous = {size for size in each.vacuous if at[size].verdict is Verdict.RUN} | set(_vacuous(nodeid, sweeps))
    same = all(
        at[size].verdict == each.profile[str(size)] and at[size].devices == each.devices.get(str(size), 0)
        for size in SIZES
    )
    numbers = derived(at)
    return msgspec.structs.replace(
        each,
        nodeid=nodeid,
        profile={str(size): one.verdict for size, one in at.items()},
        min=each.min if same else numbers.min,
        gpu_min=each.gpu_min if same else numbers.gpu_min,
        full=each.full if same else numbers.full,
        max=each.max if same else numbers.max,
        adaptive=each.adaptive if same else numbers.adaptive,
        devices=each.devices if same else {str(size): one.devices for size, one in at.items() if one.devices},
        vacuous=sorted(vacuous),
        confidence=_confidence(each, is_same=same, is_sure=any(sweep.complete for sweep in sweeps.values())),
        reasons={str(size): one.reason for size, one in at.items() if one.verdict is not Verdict.RUN},
    )


def _confidence(each: TestNeeds, *, is_same: bool, is_sure: bool) -> Confidence:
    if each.confidence is Confidence.LOW:
        return each.confidence
    if is_same:
        return Confidence.HIGH
    return each.confidence if is_sure else Confidence.MEDIUM


def _seen(before: AtSize, nodeid: str, each: TestNeeds, sweeps: Mapping[int, Sweep], size: int) -> AtSize:
    """What is believed of a test at one size."""
    path, sweep = nodeid.partition("::")[0], sweeps[size]
    if nodeid not in sweep.tests:
        if path in sweep.files:
            return AtSize(verdict=Verdict(sweep.files[path]), reason="the file is not collected")
        return AtSize(verdict=Verdict.ABSENT, reason="not collected")
    outcome, reason = sweep.tests[nodeid]
    if sweep.complete:
        said = before if outcome == before.verdict else AtSize(verdict=Verdict(outcome), reason=reason)
        return msgspec.structs.replace(said, devices=sweep.devices.get(nodeid, said.devices))
    doubtful = each.confidence is not Confidence.HIGH or before.verdict in (Verdict.UNKNOWN, Verdict.ABSENT)
    too_few = any(seen.tests.get(nodeid, ("", ""))[0] == "run" for more, seen in sweeps.items() if more > size)
    if outcome == "skip" and before.verdict is not Verdict.SKIP and (doubtful or too_few):
        return AtSize(verdict=Verdict.SKIP, reason=reason)
    if outcome == "run" and before.verdict in (Verdict.UNKNOWN, Verdict.ABSENT):
        return AtSize(verdict=Verdict.RUN)
    if before.verdict is Verdict.ABSENT:
        return AtSize(verdict=Verdict.UNKNOWN, reason=reason)
    return before


def _vacuous(nodeid: str, sweeps: Mapping[int, Sweep]) -> list[int]:
    """Sizes at which a test passed without the workers that it starts at others."""
    workers = {size: sweep.workers.get(nodeid, 0) for size, sweep in sweeps.items() if sweep.complete}
    if not any(workers.values()):
        return []
    return [
        size for size, count in workers.items() if count == 0 and sweeps[size].tests.get(nodeid, ("", ""))[0] == "run"
    ]


def _found(nodeid: str, sweeps: Mapping[int, Sweep]) -> TestNeeds:
    """A test that the source did not show: a factory made it."""
    path = nodeid.partition("::")[0]
    at = {size: AtSize(verdict=_plain(nodeid, path, sweeps.get(size))) for size in SIZES}
    reasons = {str(size): sweeps[size].tests.get(nodeid, ("", "not collected"))[1] for size in SIZES if size in sweeps}
    place = Evidence(path=path, line=0, text="found by the sweep")
    is_sure = all(one.verdict is not Verdict.UNKNOWN for one in at.values())
    said = described(nodeid, path, at, confidence=Confidence.MEDIUM if is_sure else Confidence.LOW, evidence=[place])
    told = {size: reason for size, reason in reasons.items() if reason}
    return msgspec.structs.replace(said, ranks={}, devices={}, reasons=told)


def _plain(nodeid: str, path: str, sweep: Sweep | None) -> Verdict:
    if sweep is None:
        return Verdict.UNKNOWN
    if nodeid in sweep.tests:
        outcome = sweep.tests[nodeid][0]
        return Verdict.UNKNOWN if outcome == "fail" and not sweep.complete else Verdict(outcome)
    return Verdict(sweep.files.get(path, "absent"))
