"""Sweeps laid over the source's answers; declarations, needs and placement compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sooner.model.errors import SettingsError
from sooner.model.patterns import is_meant
from sooner.plan.needs import Confidence, Evidence, TestNeeds, Verdict
from sooner.plan.needs.merge import Sweep, merged
from sooner.plan.needs.placement import Job, counted, declared_of, differences, placement_of

_WORDS = {"r": Verdict.RUN, "s": Verdict.SKIP, "f": Verdict.FAIL, "a": Verdict.ABSENT, "?": Verdict.UNKNOWN}
SIZES = (0, 1, 2, 3, 4, 8)


def needs(letters, *, nodeid="t.py::test_a", confidence=Confidence.MEDIUM, text="", gpu_min=None, full=None, devices=0):
    runs = [size for size, each in zip(SIZES, letters, strict=True) if each == "r"]
    return TestNeeds(
        nodeid=nodeid, path=nodeid.partition("::")[0],
        profile={str(size): _WORDS[each] for size, each in zip(SIZES, letters, strict=True)},
        min=runs[0] if runs else None, gpu_min=gpu_min, full=full, max=None, adaptive=False, confidence=confidence,
        evidence=[Evidence(path="t.py", line=1, text=text)], devices={str(size): devices for size in runs},
    )  # fmt: skip


def sweeps(letters, nodeid="t.py::test_a", **options):
    words = {"r": "run", "s": "skip", "f": "fail"}
    return {
        size: Sweep(tests={nodeid: (words[each], "seen")} if each != "a" else {}, **options)
        for size, each in zip(SIZES, letters, strict=True)
    }


def letters(found):
    return "".join(each.value[0] for each in found.profile.values())


def test_a_skip_that_was_seen_is_believed_where_the_source_left_doubt():
    (found,) = merged([needs("rrrrrr")], sweeps("ssrrrr"))
    assert letters(found) == "ssrrrr"
    assert found.min == 2


def test_a_source_that_is_sure_stays():
    (found,) = merged([needs("rrrrrr", confidence=Confidence.HIGH)], sweeps("rrssss"))
    assert letters(found) == "rrrrrr"


def test_a_skip_that_is_gone_with_more_devices_is_believed_against_a_source_that_is_sure():
    (found,) = merged([needs("rrrrrr", confidence=Confidence.HIGH)], sweeps("ssrrrr"))
    assert (letters(found), found.min, found.confidence) == ("ssrrrr", 2, Confidence.MEDIUM)


def test_a_failure_of_a_cut_body_says_nothing_and_that_of_a_whole_one_does():
    (found,) = merged([needs("rrrrrr")], sweeps("ffrrrr"))
    assert letters(found) == "rrrrrr"
    (found,) = merged([needs("rrrrrr")], sweeps("ffrrrr", complete=True))
    assert letters(found) == "ffrrrr"


def test_devices_that_a_whole_run_was_seen_to_touch_are_believed():
    seen = sweeps("rrrrrr", complete=True)
    for size in (1, 2, 3, 4, 8):
        seen[size] = Sweep(tests=seen[size].tests, devices={"t.py::test_a": min(size, 2)}, complete=True)
    (found,) = merged([needs("rrrrrr")], seen)
    assert found.devices == {"1": 1, "2": 2, "3": 2, "4": 2, "8": 2}
    assert (found.min, found.gpu_min, found.full) == (0, 1, 2)


def test_cases_take_the_place_of_the_entry_that_stood_for_them():
    seen = sweeps("ssrrrr", nodeid="t.py::test_a[x]")
    assert [each.nodeid for each in merged([needs("rrrrrr")], seen)] == ["t.py::test_a[x]"]


def test_tests_of_a_factory_are_added():
    found = merged([], sweeps("ssssrr", nodeid="t.py::TestMade::test_b"))
    assert [(each.nodeid, each.min, letters(each)) for each in found] == [("t.py::TestMade::test_b", 4, "ssssrr")]


def test_a_file_that_was_not_collected_fails():
    lost = {
        size: Sweep(tests={}, files={"t.py": "fail"}) if size < 2 else each for size, each in sweeps("aarrrr").items()
    }
    (found,) = merged([needs("rrrrrr")], lost)
    assert letters(found) == "ffrrrr"


@pytest.mark.parametrize("files", [{"t.py": "fail"}, {"pkg": "fail"}, {}])
def test_a_file_that_a_dry_sweep_never_collects_for_want_of_a_package_keeps_what_its_source_says(files):
    lost = {size: Sweep(tests={}, files=files) for size in SIZES}
    (found,) = merged([needs("ssssrr", confidence=Confidence.HIGH)], lost)
    assert (letters(found), found.min, found.confidence) == ("ssssrr", 4, Confidence.MEDIUM)


def test_a_file_that_skips_itself_with_every_number_of_devices_never_runs():
    (found,) = merged([needs("ssssrr")], {size: Sweep(tests={}, files={"t.py": "skip"}) for size in SIZES})
    assert letters(found) == "ssssss"


def test_a_pass_without_the_workers_of_other_sizes_is_vacuous():
    seen = {
        size: Sweep(tests={"t.py::test_a": ("run", "")}, workers={"t.py::test_a": size}, complete=True)
        for size in (0, 1, 2)
    }
    (found,) = merged([needs("rrrrrr")], seen)
    assert found.vacuous == [0]


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("@skip_if_lt_x_gpu(4)", 4),
        ("@RunIf(min_cuda_gpus=2)", 2),
        ("if torch.cuda.device_count() < 3:", 3),
        ("skipif(torch.cuda.device_count() <= 1)", 2),
        ("skipif(torch.cuda.device_count() > 8)", None),
        ("skipIf(not torch.cuda.device_count() > 1)", 2),
        ("skipUnless(torch.cuda.device_count() > 1)", 2),
        ("@require_multi_device", 2),
        ("x = 8", None),
    ],
)
def test_a_declaration_is_read_from_the_lines_that_decide(text, declared):
    assert declared_of(needs("rrrrrr", text=text)) == declared


def test_every_kind_of_disagreement():
    jobs = placement_of('[[job]]\nname = "d"\ndevices = 2\npaths = ["t.py"]\n', "p.toml")
    found = differences(
        [
            needs("ssssrr", nodeid="t.py::test_orphan", gpu_min=4, full=4),
            needs("ssrrrr", nodeid="t.py::test_below", gpu_min=2, full=4),
            needs("ssrrrr", nodeid="t.py::test_fine", gpu_min=2, full=2),
            needs("sfrrrr", nodeid="t.py::test_loose", gpu_min=2, full=2, text="device_count() < 1"),
            needs("ssssrr", nodeid="t.py::test_tight", gpu_min=4, full=4, text="skip_if_lt_x_gpu(4)", devices=2),
            needs("rrrrrr", nodeid="u.py::test_lost"),
        ],
        jobs,
    )
    assert {(each.nodeid.partition("::")[2], each.kind) for each in found} == {
        ("test_orphan", "orphan"),
        ("test_below", "below full"),
        ("test_loose", "under-declared"),
        ("test_tight", "over-declared"),
        ("test_tight", "orphan"),
        ("test_lost", "not placed"),
    }
    assert counted(found)["orphan"] == 2


@pytest.mark.parametrize(
    ("letters", "least", "size", "is_orphan"),
    [("sssssr", 6, 6, False), ("sssssr", 6, 5, True), ("ssssss", 16, 16, False), ("ssssss", 16, 8, True)],
)
def test_a_job_of_a_size_that_was_not_probed_executes_what_runs_from_fewer_on(letters, least, size, is_orphan):
    jobs = placement_of(f'[[job]]\nname = "d"\ndevices = {size}\npaths = ["t.py"]\n', "p.toml")
    found = differences([replace(needs(letters), min=least, gpu_min=least, full=least)], jobs)
    assert [each.kind for each in found] == ["orphan"] * is_orphan


@pytest.mark.parametrize(
    ("letters", "gpu_min", "sizes", "kinds"),
    [
        ("ssrsrs", 2, (2, 8), ["below full"]), ("ssrsrs", 2, (4, 8), []),
        ("rsrsss", 2, (0, 8), ["orphan"]), ("rsrsss", 2, (0, 2), ["below full"]),
    ],
)  # fmt: skip
def test_a_job_that_skips_a_test_covers_nothing_of_it_however_many_devices_it_has(letters, gpu_min, sizes, kinds):
    jobs = placement_of("".join(f'[[job]]\ndevices = {size}\npaths = ["t.py"]\n' for size in sizes), "p.toml")
    found = differences([needs(letters, gpu_min=gpu_min, full=4)], jobs)
    assert [each.kind for each in found] == kinds


def test_a_job_may_name_a_test_with_its_parameters():
    jobs = placement_of('[[job]]\nname = "d"\ndevices = 2\npaths = ["t.py::test_a[tp-2]"]\n', "p.toml")
    found = differences([needs("ssrrrr", nodeid=f"t.py::test_a[{one}]") for one in ("tp-2", "tp-4")], jobs)
    assert [(each.nodeid, each.kind) for each in found] == [("t.py::test_a[tp-4]", "not placed")]


def test_a_guard_for_the_number_of_the_device_that_is_touched_is_no_over_declaration():
    tight = needs("ssssrr", gpu_min=4, full=4, text="device_count() < 4", devices=1)
    loose = needs("ssssrr", gpu_min=4, full=4, text="device_count() < 4", devices=1)
    found = differences([replace(tight, reach={"4": 4, "8": 4}), replace(loose, reach={"4": 2, "8": 2})], [])
    assert [each.detail for each in found] == ["its guard asks for 4, and it touches 1, for which 2 must be visible"]


@pytest.mark.parametrize(
    "text", ["[[job]]\nname='a'", *(f"[[job]]\ndevices={n}\npaths=[]" for n in ("'2'", "-4", "true")), "[["]
)
def test_a_placement_that_is_not_understood_is_an_error(text):
    with pytest.raises(SettingsError, match=r"p\.toml"):
        placement_of(text, "p.toml")


PARTS = st.lists(
    st.sampled_from(["a", "b.py", "/", "::", "[x-1]", "*", "?", "[!a]", "-", "+", "(", "\n", "é"]), max_size=6
)


@given(nodeid=PARTS.map("".join), patterns=st.lists(PARTS.map("".join), max_size=4))
def test_many_patterns_at_once_mean_what_each_of_them_means(nodeid, patterns):
    path = nodeid.partition("::")[0]
    one_by_one = any(
        is_meant(nodeid, each) or is_meant(path, each) or path.startswith(f"{each.rstrip('/')}/") for each in patterns
    )
    assert Job(name="j", devices=1, paths=tuple(patterns)).runs(nodeid) == one_by_one
