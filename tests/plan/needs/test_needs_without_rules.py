"""What suites do that no rule was written for: their options, their switches, their hooks, and how libraries refuse."""

from small_projects import devices_of, needs_of


def test_a_copy_of_the_environment_by_the_module_for_copies_keeps_what_is_put_into_it():
    text = """
    import copy, os, subprocess

    def start(number):
        env = copy.deepcopy(os.environ)
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(number, number + 1)))
        return subprocess.Popen(["torchrun", "--nproc_per_node=1", "src/train.py"], env=env)

    def test_two_nodes():
        for each in [start(number) for number in range(2)]:
            assert each.wait() == 0
    """
    script = """
    import os
    import torch

    if __name__ == "__main__":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "src/train.py": script})
    assert found == {"test_two_nodes": (2, 2, 2)}
