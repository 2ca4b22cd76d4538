"""What a program inherits of the test that starts it: the devices that it sees; and that it fails as one."""

from small_projects import needs_of

ALL = """
    import os
    import subprocess
    import sys
    import torch

    ALL = "import torch\\nfor i in range(torch.cuda.device_count()): torch.ones(1, device=i)"
    ONE = "import torch\\ntorch.ones(1, device='cuda')"
"""


def found_in(text, files=()):
    found = needs_of("test_it.py", {"test_it.py": ALL + text, **dict(files)})
    return {name: (each.min, each.gpu_min, each.full) for name, each in found.items()}


def test_a_program_sees_the_devices_that_its_environment_names():
    text = """
    def test_one(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
        subprocess.check_call([sys.executable, "-c", ALL])

    def test_two():
        os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
        subprocess.run([sys.executable, "-c", ALL], check=True)

    def test_one_of_two(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
        subprocess.check_call([sys.executable, "-c", ONE])

    def test_none(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        subprocess.check_call([sys.executable, "-c", ALL])

    def test_another(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
        subprocess.check_call([sys.executable, "-c", ALL])

    def test_its_own(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
        subprocess.check_call([sys.executable, "-c", ALL], env={**os.environ, "CUDA_VISIBLE_DEVICES": "0,1"})

    def test_all():
        subprocess.check_call([sys.executable, "-c", ALL])

    def test_undone(monkeypatch):
        with monkeypatch.context() as patch:
            patch.setenv("CUDA_VISIBLE_DEVICES", "0")
        subprocess.check_call([sys.executable, "-c", ALL])
    """
    assert found_in(text) == {
        "test_one": (0, 1, 1),
        "test_two": (0, 1, 2),
        "test_one_of_two": (1, 1, 1),
        "test_none": (0, None, 0),
        "test_another": (4, 4, 4),
        "test_its_own": (2, 2, 2),
        "test_all": (0, 1, 8),
        "test_undone": (0, 1, 8),
    }


def test_a_file_that_is_run_as_a_program_sees_the_devices_that_its_environment_names():
    script = """
    import torch

    for i in range(torch.cuda.device_count()):
        torch.ones(1, device=i)
    """
    text = """
    HERE = os.path.dirname(__file__)

    def test_two(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
        subprocess.check_call([sys.executable, os.path.join(HERE, "script.py")])

    def test_launcher_of_two(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
        subprocess.check_call(["accelerate", "launch", "--multi_gpu", os.path.join(HERE, "script.py")])
    """
    found = found_in(text, {"script.py": script}.items())
    assert (found["test_two"], found["test_launcher_of_two"][2]) == ((0, 1, 2), 2)


def test_what_a_program_asserts_of_devices_fails_the_test_that_checks_it():
    text = """
    TWO = "import torch\\nassert torch.cuda.device_count() >= 2"
    FOUR = "import torch\\nif torch.cuda.device_count() < 4: raise RuntimeError('few')"

    def test_checked():
        subprocess.check_call([sys.executable, "-c", TWO])

    def test_raised():
        subprocess.run([sys.executable, "-c", FOUR], check=True)

    def test_asked():
        process = subprocess.run([sys.executable, "-c", TWO])
        assert process.returncode == 0

    def test_nobody_asks():
        subprocess.run([sys.executable, "-c", TWO])

    def test_never():
        subprocess.check_call([sys.executable, "-c", "assert 1 == 2"])

    def test_exits():
        subprocess.check_call([sys.executable, "-c", "import sys\\nsys.exit(0)"])
    """
    assert found_in(text) == {
        "test_checked": (2, 2, 2),
        "test_raised": (4, 4, 4),
        "test_asked": (2, 2, 2),
        "test_nobody_asks": (0, None, 0),
        "test_never": (0, None, 0),
        "test_exits": (0, None, 0),
    }
