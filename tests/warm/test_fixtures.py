import os
import subprocess
import sys
import textwrap
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("torch")

CONFTEST = """
    import pytest
    from sooner.warm import fixtures

    @pytest.fixture(scope="session")
    def kept(request):
        yield from fixtures.warmth(request)

    @pytest.fixture
    def world(request, kept):
        yield from fixtures.world(request, kept)

    @pytest.fixture
    def resource(request, kept):
        yield from fixtures.resource(request, kept)

    @pytest.fixture
    def process_group(request, kept):
        yield from fixtures.process_group(request, kept)
"""
SUITE = """
    import os
    import pytest
    import torch
    import torch.distributed as dist
    from sooner.warm import Kind, holdings

    seen = {}

    def total():
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def fail():
        assert dist.get_rank() != 1, "on this rank"

    def test_ranks_compute(world):
        ranks = world(2)
        assert ranks.run(total) == [[2.0, 2.0]] * 2
        seen["pids"] = ranks.pids

    def test_ranks_are_kept(world):
        ranks = world(2)
        assert ranks.run(total) == [[2.0, 2.0]] * 2
        assert ranks.pids == seen["pids"]

    @pytest.mark.isolation("fork")
    def test_ranks_are_new_in_isolation(world):
        assert not set(world(2).pids) & set(seen["pids"])

    def test_two_worlds_at_once(world):
        assert len({*world(2).pids, *world(2).pids}) == 4

    def test_a_failure_on_a_rank_is_a_failure(world):
        print("said before")
        world(2).run(fail)

    def test_without_a_group(world):
        assert world(1, backend=None).run(dist.is_initialized) == [False]

    def test_nothing_that_is_kept_looks_leaked(world):
        before = {int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
        world(1).run(total)
        after = {int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
        assert after > before
        assert after - before <= holdings.descriptors()

    class Files(Kind):
        made = []

        def make(self, config):
            self.made.append(open(os.devnull))
            return self.made[-1]

        def destroy(self, thing):
            thing.close()

    def test_a_resource_is_leased(resource):
        thing = resource(Files, "a")
        assert thing.fileno() in holdings.descriptors()
        assert resource(Files, "a", parent=thing) is not thing

    def test_a_resource_is_kept(resource):
        assert resource(Files, "a") is Files.made[0]

    def test_a_failing_test_keeps_nothing(resource):
        assert resource(Files, "a") is not Files.made[0], "as the next test expects"

    def test_what_a_failing_test_used_is_gone(resource):
        assert Files.made[0].closed
        assert not resource(Files, "a").closed

    def test_a_group_of_this_process(process_group):
        group = process_group()
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=group)
        assert tensor.tolist() == [1.0, 1.0]
        assert id(group) in holdings.groups()
        seen["group"] = group

    def test_a_group_is_kept(process_group):
        assert process_group() is seen["group"]
        assert process_group(timeout_s=60.0) is not seen["group"]
"""
FAILING = {"test_a_failure_on_a_rank_is_a_failure", "test_a_failing_test_keeps_nothing"}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\nmarkers = isolation: level\n")
    (folder / "conftest.py").write_text(textwrap.dedent(CONFTEST))
    (folder / "test_suite.py").write_text(textwrap.dedent(SUITE))
    command = [sys.executable, "-m", "pytest", "-q", "--junitxml=junit.xml", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    root = ET.parse(folder / "junit.xml").getroot()
    return {case.get("name"): case for case in root.iter("testcase")} | {"output": done.stdout + done.stderr}


@pytest.mark.parametrize("name", [line.split()[1].split("(")[0] for line in SUITE.splitlines() if " def test_" in line])
def test_the_fixtures_in_a_plain_pytest(cases, name):
    case = cases[name]
    outcome = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    assert outcome == (["failure"] if name in FAILING else []), cases["output"]


def test_the_backend_is_a_property_of_the_test(cases):
    (found,) = cases["test_ranks_compute"].iter("property")
    assert (found.get("name"), found.get("value")) == ("backend", "gloo")


def test_a_failure_on_a_rank_is_told_with_its_traceback(cases):
    (failure,) = cases["test_a_failure_on_a_rank_is_a_failure"].iter("failure")
    assert "AssertionError: on this rank" in failure.text
    assert "fail failed on rank 1 of 2" in failure.text
    assert "in fail" in failure.text
