"""Programs that a test writes into a file, and then starts, alone or by a launcher."""

from small_projects import devices_of, needs_of

_TEXT = """
    import os
    import subprocess
    import sys
    import tempfile
    import textwrap

    RANKS = textwrap.dedent('''
        import torch
        import torch.distributed as dist

        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        if torch.cuda.is_available():
            torch.cuda.set_device(dist.get_rank())
        dist.all_reduce(torch.ones(1))
    ''')

    def test_a_path(tmp_path):
        script = tmp_path / "ranks.py"
        script.write_text(RANKS)
        subprocess.run(["torchrun", "--nproc_per_node=2", str(script)], check=True)

    def test_a_temporary_file():
        with tempfile.NamedTemporaryFile(mode="w+", suffix=".py") as file:
            file.write(RANKS)
            file.flush()
            subprocess.run(f"torchrun --nproc_per_node {3} --master_port 29500 {file.name}".split(), check=True)

    def test_an_open_file(tmp_path):
        path = os.path.join(tmp_path, "ranks.py")
        with open(path, "w") as file:
            file.write(RANKS)
        subprocess.check_call([sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=4", path])

    def test_alone(tmp_path):
        script = tmp_path / "alone.py"
        with script.open("w") as file:
            file.write("import torch\\n")
            file.write("torch.ones(1).to('cuda:1')\\n")
        subprocess.run([sys.executable, str(script)], check=True)

    def test_alone_on_the_host(tmp_path):
        script = tmp_path / "alone.py"
        script.write_text("import torch\\ntorch.ones(1)\\n")
        subprocess.run([sys.executable, str(script)], check=True)

    def test_on_the_host(tmp_path):
        script = tmp_path / "ranks.py"
        script.write_text("import torch.distributed as dist\\ndist.init_process_group('gloo')\\n")
        subprocess.run(["torchrun", "--nproc_per_node=4", str(script)], check=True)

    def test_the_librarys(tmp_path):
        script = tmp_path / "ranks.py"
        script.write_text("import acme\\nacme.main()\\n")
        subprocess.run(["torchrun", "--nproc_per_node=4", str(script)], check=True)

    def test_not_known(tmp_path, fetch):
        script = tmp_path / "ranks.py"
        script.write_text(fetch("ranks"))
        subprocess.run(["torchrun", "--nproc_per_node=4", str(script)], check=True)

    def test_another_one(tmp_path):
        (tmp_path / "alone.py").write_text("import torch\\ntorch.ones(1).to('cuda:1')\\n")
        (tmp_path / "other.py").write_text("import torch\\n")
        subprocess.run([sys.executable, str(tmp_path / "other.py")], check=True)
"""


def test_a_program_that_a_test_writes_and_starts_is_a_part_of_the_test():
    found = needs_of("tests/test_it.py", {"tests/test_it.py": _TEXT})
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_a_path": (0, 2, 2),
        "test_a_temporary_file": (0, 3, 3),
        "test_an_open_file": (0, 4, 4),
        "test_alone": (2, 2, 2),
        "test_alone_on_the_host": (0, None, 0),
        "test_on_the_host": (0, None, 0),
        "test_the_librarys": (4, 4, 4),
        "test_not_known": (4, 4, 4),
        "test_another_one": (0, None, 0),
    }
    assert found["test_a_path"].ranks["2"] == 2


def test_ranks_over_which_a_model_of_transformers_is_split_are_on_the_host_where_there_is_no_device():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": '''
            import subprocess
            import tempfile

            def test_split():
                with tempfile.NamedTemporaryFile(mode="w+", suffix=".py") as script:
                    script.write("""
            from transformers import AutoModelForCausalLM
            AutoModelForCausalLM.from_pretrained("small", tp_plan="auto").generate()
            """)
                    script.flush()
                    subprocess.run(f"torchrun --nproc_per_node 2 {script.name}".split(), check=True)

            def test_split_by_a_script_of_the_tree():
                subprocess.run(["torchrun", "--nproc_per_node=4", "tests/split.py"], check=True)
            ''',
            "tests/split.py": """
            from transformers import LlamaForCausalLM
            from transformers.distributed import DistributedConfig
            LlamaForCausalLM.from_pretrained("small", distributed_config=DistributedConfig(tp_size=4))
            """,
        },
    )
    assert found == {"test_split": (0, 2, 2), "test_split_by_a_script_of_the_tree": (0, 4, 4)}
