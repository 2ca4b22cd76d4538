"""Frameworks besides PyTorch, JAX, CuPy and Numba: which of their calls count devices, name them or use them."""

import pytest
from small_projects import devices_of, needs_of


def said(files):
    path = next(iter(files))
    return {
        name.rpartition("::")[2]: ("".join(each.value[0] for each in needs.profile.values()), needs.gpu_min, needs.full)
        for name, needs in needs_of(path, files).items()
    }


def test_warps_devices_are_counted_and_used_by_their_names():
    assert said(
        {
            "test_warp.py": """
            import unittest
            import warp as wp

            class TestDevices(unittest.TestCase):
                @unittest.skipUnless(len(wp.get_cuda_devices()) > 1, "two")
                def test_two(self):
                    wp.set_device("cuda:0")
                    wp.empty(32, dtype=int)
                    with wp.ScopedDevice("cuda:1"):
                        wp.empty(32, dtype=int)

                @unittest.skipUnless(wp.is_cuda_available(), "one")
                def test_one(self):
                    wp.zeros(3, device="cuda:0")

                def test_default(self):
                    wp.zeros(3)
            """
        }
    ) == {"test_two": ("ssrrrr", 2, 2), "test_one": ("srrrrr", 1, 1), "test_default": ("rrrrrr", 1, 1)}


def test_mxnets_arrays_are_on_the_device_that_is_named():
    assert said(
        {
            "test_mx.py": """
            import mxnet as mx

            def test_two():
                [mx.nd.ones((2, 2), ctx=mx.gpu(each)) for each in range(2)]

            def test_one():
                mx.nd.array([1], mx.gpu(0))

            def test_moved():
                mx.nd.ones((2, 2)).copyto(mx.gpu())

            def test_host():
                mx.nd.ones((2, 2))
            """
        }
    ) == {
        "test_two": ("ffrrrr", 2, 2),
        "test_one": ("frrrrr", 1, 1),
        "test_moved": ("frrrrr", 1, 1),
        "test_host": ("rrrrrr", None, 0),
    }


def test_tensorflow_chainer_and_pycuda_use_the_first_device():
    assert said(
        {
            "test_first.py": """
            import chainer
            import pycuda.driver
            import pytest
            import tensorflow as tf

            def test_tensor():
                tf.ones((2, 2))

            @pytest.mark.skipif(not tf.config.list_physical_devices("GPU"), reason="no GPU")
            def test_guarded():
                tf.ones((2, 2))

            def test_copied():
                chainer.cuda.to_gpu([1], device=1)

            def test_initialized():
                pycuda.driver.init()
            """
        }
    ) == {
        "test_tensor": ("rrrrrr", 1, 1),
        "test_guarded": ("srrrrr", 1, 1),
        "test_copied": ("ffrrrr", 2, 2),
        "test_initialized": ("frrrrr", 1, 1),
    }


_OF_EXECUTORS = """
    import pytest
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.executor.multiproc_executor import MultiprocExecutor
    from vllm.v1.executor.ray_executor_v2 import RayExecutorV2

    def make_config(tensor=1, pipeline=1, group=None, **more):
        args = EngineArgs(model="m", tensor_parallel_size=tensor, pipeline_parallel_size=pipeline, **more)
        config = args.create_engine_config()
        if group is not None:
            config.parallel_config.placement_group = group
        return config

    @pytest.fixture
    def executor(request):
        executor = RayExecutorV2(vllm_config=request.param)
        yield executor
        executor.shutdown()

    @pytest.mark.parametrize("tensor, pipeline", [(1, 1), (2, 2)])
    def test_sizes(tensor, pipeline):
        executor = RayExecutorV2(vllm_config=make_config(tensor, pipeline))
        assert executor.world_size == tensor * pipeline

    @pytest.mark.parametrize("executor", [make_config(tensor=3)], indirect=True)
    def test_fixture(executor):
        assert not executor.is_failed

    def test_half_of_them_are_on_another_node():
        MultiprocExecutor(vllm_config=make_config(tensor=4, nnodes=2, node_rank=1))
    """

_THEIR_ARGUMENTS = """
    import dataclasses
    from vllm.config import VllmConfig

    @dataclasses.dataclass
    class EngineArgs:
        model: str = ""
        tensor_parallel_size: int = 1
        pipeline_parallel_size: int = 1
        nnodes: int = 1
        node_rank: int = 0

        def create_engine_config(self):
            return VllmConfig(model=self.model)
    """


@pytest.mark.parametrize("more", [{}, {"vllm/engine/arg_utils.py": _THEIR_ARGUMENTS}], ids=["alone", "with source"])
def test_an_executor_of_vllms_starts_the_ranks_of_the_configuration_that_its_arguments_make(more):
    assert devices_of("test_executors.py", {"test_executors.py": _OF_EXECUTORS, **more}) == {
        "test_sizes[1-1]": (1, 1, 1),
        "test_sizes[2-2]": (4, 4, 4),
        "test_fixture[executor0]": (3, 3, 3),
        "test_half_of_them_are_on_another_node": (2, 2, 2),
    }


def test_an_engine_in_a_program_has_the_size_that_its_command_line_says_where_its_parser_is_not_known():
    found = devices_of(
        "tests/test_program.py",
        {
            "examples/save.py": """
            from vllm import LLM, EngineArgs
            from vllm.utils import FlexibleArgumentParser

            if __name__ == "__main__":
                parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
                args = parser.parse_args()
                LLM(model=args.model, tensor_parallel_size=args.tensor_parallel_size)
            """,
            "tests/test_program.py": """
            import subprocess
            import sys
            from pathlib import Path

            ROOT = Path(__file__).parent.parent

            def test_three():
                told = ["--model", "m", "--tensor-parallel-size", str(3), "save"]
                subprocess.run([sys.executable, f"{ROOT}/examples/save.py", *told], check=True)

            def test_one():
                subprocess.run([sys.executable, f"{ROOT}/examples/save.py", "--model", "m"], check=True)
            """,
        },
    )
    assert found == {"test_three": (3, 3, 3), "test_one": (1, 1, 1)}


def test_a_server_uses_the_devices_that_it_is_told_and_not_those_that_are_watched():
    found = devices_of(
        "tests/test_servers.py",
        {
            "tests/utils.py": """
            import subprocess
            import pynvml
            import torch
            from multiprocessing import Process

            class Server:
                def __init__(self, model, options):
                    pynvml.nvmlInit() if torch.cuda.is_available() else None
                    self.used = [self.watched(index) for index in range(torch.cuda.device_count())]
                    self.start(model, options)

                def __enter__(self):
                    return self

                def __exit__(self, *args):
                    pass

                def watched(self, index):
                    return pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(index)).used

            class RendererServerProcess(Server):
                def start(self, model, options):
                    subprocess.Popen(["vllm", "launch", "render", model, *options])

            class RemoteOpenAIServerCustom(Server):
                def __init__(self, model, options, work):
                    self.work = work
                    super().__init__(model, options)

                def start(self, model, options):
                    Process(target=self.work, args=(model, options)).start()
            """,
            "tests/test_servers.py": """
            from .utils import RemoteOpenAIServerCustom, RendererServerProcess

            def work(model, options):
                from vllm.entrypoints.cli import main
                main.main()

            def test_renderer():
                with RendererServerProcess("m", ["--port", "1"]):
                    pass

            def test_server():
                with RemoteOpenAIServerCustom("m", ["--tensor-parallel-size", "2"], work):
                    pass
            """,
        },
    )
    assert found == {"test_renderer": (0, None, 0), "test_server": (2, 2, 2)}


def test_a_command_of_vllms_that_serves_is_an_engine_by_whichever_name_it_is_called():
    found = devices_of(
        "test_commands.py",
        {
            "test_commands.py": """
            import asyncio
            import subprocess
            import sys

            def test_called():
                subprocess.Popen(["vllm", "serve", "m", "--tensor-parallel-size=2"])

            async def test_as_a_module():
                words = ["-m", "vllm.entrypoints.cli.main", "serve", "m", "-tp", "4"]
                await asyncio.create_subprocess_exec(sys.executable, *words)

            def test_rendered():
                subprocess.Popen([sys.executable, "-m", "vllm.entrypoints.cli.main", "launch", "render", "m"])

            def test_measured():
                subprocess.run(["vllm", "bench", "throughput", "--model", "m", "-tp", "2"], check=True)

            def test_a_server_is_measured():
                subprocess.run(["vllm", "bench", "serve", "--model", "m"], check=True)
            """
        },
    )
    assert found == {
        "test_called": (2, 2, 2),
        "test_as_a_module": (4, 4, 4),
        "test_rendered": (0, None, 0),
        "test_measured": (2, 2, 2),
        "test_a_server_is_measured": (0, None, 0),
    }


def test_engines_of_vllm_omni_have_a_device_for_each_of_their_ranks():
    found = needs_of(
        "tests/test_it.py",
        {
            "vllm_omni/__init__.py": "",
            "vllm_omni/entrypoints/__init__.py": "",
            "vllm_omni/entrypoints/async_omni.py": """
            class AsyncOmni:
                def __init__(self, *args, **kwargs):
                    self.engine = start(kwargs)
            """,
            "tests/test_it.py": """
            import subprocess, sys
            import pytest
            from vllm_omni import Omni
            from vllm_omni.entrypoints.async_omni import AsyncOmni

            @pytest.mark.parametrize("tp_size", [1, 2])
            def test_asynchronous(tp_size):
                AsyncOmni(**{"model": "m", "tensor_parallel_size": tp_size})

            def test_stages():
                Omni(model="m", stage_configs_path="stages.yaml")

            def test_served():
                words = [sys.executable, "-m", "vllm_omni.entrypoints.cli.main", "serve", "m", "--omni"]
                subprocess.Popen([*words, "--tensor-parallel-size", "4"])

            def on_cards(number):
                return pytest.mark.distributed_cuda(num_cards=number)

            @on_cards(4)
            def test_stages_on_cards():
                Omni(model="m", stage_configs_path="stages.yaml")
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.confidence.name) for name, each in found.items()} == {
        "test_asynchronous[1]": (1, 1, "MEDIUM"),
        "test_asynchronous[2]": (2, 2, "MEDIUM"),
        "test_stages": (1, 1, "MEDIUM"),
        "test_served": (4, 4, "HIGH"),
        "test_stages_on_cards": (4, 4, "MEDIUM"),
    }


def test_a_model_that_vllm_writes_out_is_loaded_by_an_engine_of_the_arguments_size():
    found = devices_of(
        "test_writing.py",
        {
            "test_writing.py": """
            from vllm.engine.arg_utils import EngineArgs
            from vllm.model_executor.model_loader.tensorizer import TensorizerConfig, tensorize_vllm_model

            def test_written(tmp_path):
                config = TensorizerConfig(tensorizer_uri=str(tmp_path))
                tensorize_vllm_model(EngineArgs(model="m", tensor_parallel_size=2), config)
            """
        },
    )
    assert found == {"test_written": (2, 2, 2)}


def test_paddles_devices_are_counted():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import unittest
            import paddle
            from paddle import fluid

            class TestParallel(unittest.TestCase):
                @unittest.skipIf(paddle.device.cuda.device_count() < 2, "two")
                def test_two(self):
                    pass

                @unittest.skipIf(fluid.core.get_cuda_device_count() == 0, "one")
                def test_one(self):
                    pass
            """
        },
    )
    assert found == {"TestParallel::test_two": (2, 2, 2), "TestParallel::test_one": (1, 1, 1)}


def test_pinned_memory_is_a_devices():
    found = devices_of(
        "test_pinned.py",
        {
            "test_pinned.py": """
            import torch
            from torch.utils.data import DataLoader

            def test_loader():
                list(DataLoader([1, 2], pin_memory=torch.cuda.is_available()))

            def test_loader_by_default():
                list(DataLoader([1, 2]))

            def test_tensor():
                torch.ones(2).pin_memory()

            def test_made_so():
                torch.empty(2, pin_memory=True)

            def test_made_otherwise():
                torch.empty(2, pin_memory=False)

            def test_only_said():
                torch.distributed.fsdp.CPUOffloadPolicy(pin_memory=True)
            """
        },
    )
    assert found == {
        "test_loader": (0, 1, 1),
        "test_loader_by_default": (0, None, 0),
        "test_tensor": (1, 1, 1),
        "test_made_so": (1, 1, 1),
        "test_made_otherwise": (0, None, 0),
        "test_only_said": (0, None, 0),
    }


def test_the_current_device_of_ranks_that_are_threads_is_one_that_is_there():
    found = devices_of(
        "test_threads.py",
        {
            "test_threads.py": """
            import torch
            from torch.testing._internal.common_fsdp import FSDPTestMultiThread

            class TestThreads(FSDPTestMultiThread):
                @property
                def world_size(self):
                    return 4

                def test_current(self):
                    torch.empty(1, device=torch.device("cuda", torch.cuda.current_device()))
            """
        },
    )
    assert found == {"TestThreads::test_current": (1, 1, 1)}


def test_what_is_used_without_a_number_is_the_device_that_was_chosen():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            def test_the_last_of_two():
                torch.cuda.set_device(1 % torch.cuda.device_count())
                torch.ones(1, device="cuda")
                torch.cuda.synchronize()
                torch.cuda.Stream(None)

            def test_another():
                torch.cuda.set_device(1)
                torch.cuda.synchronize(0)
            """
        },
    )
    assert found == {"test_the_last_of_two": (1, 1, 1), "test_another": (2, 2, 2)}


def test_a_context_that_a_helper_of_the_library_makes_for_tests_under_pytests_old_name_takes_a_device():
    found = devices_of(
        "test/test_it.py",
        {
            "wrapped/tools.py": """
            import pycuda.driver

            def mark_cuda_test(test):
                def inner(*args, **kwargs):
                    pycuda.driver.init()
                    test(*args, **kwargs)
                try:
                    from py.test import mark
                except ImportError:
                    return inner
                return mark.cuda(inner)
            """,
            "test/test_it.py": """
            from wrapped.tools import mark_cuda_test

            @mark_cuda_test
            def test_marked():
                pass
            """,
        },
    )
    assert found == {"test_marked": (1, 1, 1)}


def test_tvm_says_what_is_there_by_objects_and_by_decorators():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import tvm.testing

            @tvm.testing.requires_cuda
            def test_one():
                pass

            @tvm.testing.requires_multi_gpu
            def test_two():
                pass

            @pytest.mark.skipif(not tvm.cuda(0).exist, reason="no device")
            def test_looked_for():
                pass

            @pytest.mark.skipif(not tvm.runtime.enabled("cuda"), reason="not built for CUDA")
            def test_built_so():
                pass
            """
        },
    )
    assert found == {
        "test_one": (1, 1, 1),
        "test_two": (2, 2, 2),
        "test_looked_for": (1, 1, 1),
        "test_built_so": (0, None, 0),
    }


def test_peft_reads_the_weights_of_an_adapter_onto_the_first_device_unless_it_is_told_where():
    library = """
    def get_peft_model(model, config):
        return PeftModel(model, config)

    class PeftModel:
        def __init__(self, model, config):
            self.config = config

        def load_adapter(self, model_id, name, **kwargs):
            return unheard(self, model_id, **kwargs)

        @classmethod
        def from_pretrained(cls, model, model_id, **kwargs):
            found = cls(model, unheard(model_id))
            found.load_adapter(model_id, "default", **kwargs)
            return found

    class _BaseAutoPeftModel:
        @classmethod
        def from_pretrained(cls, path, **kwargs):
            return unheard(cls._target_peft_class, path, **kwargs)

    class AutoPeftModelForCausalLM(_BaseAutoPeftModel):
        _target_peft_class = PeftModel
    """
    text = """
    import torch
    from peft import AutoPeftModelForCausalLM, LoraConfig, PeftModel, get_peft_model

    def test_read(tmp_path):
        PeftModel.from_pretrained(torch.nn.Linear(2, 2), tmp_path)

    def test_auto(tmp_path):
        AutoPeftModelForCausalLM.from_pretrained(tmp_path)

    def test_more(tmp_path):
        get_peft_model(torch.nn.Linear(2, 2), LoraConfig()).load_adapter(tmp_path, "other")

    def test_told(tmp_path):
        PeftModel.from_pretrained(torch.nn.Linear(2, 2), tmp_path, torch_device="cpu")

    def test_told_one(tmp_path):
        PeftModel.from_pretrained(torch.nn.Linear(2, 2), tmp_path, torch_device="cuda:1")

    def test_made():
        get_peft_model(torch.nn.Linear(2, 2), LoraConfig())
    """
    expected = {
        **dict.fromkeys(("test_read", "test_auto", "test_more"), (0, 1, 1)),
        "test_told": (0, None, 0),
        "test_told_one": (2, 2, 2),
        "test_made": (0, None, 0),
    }
    assert devices_of("tests/test_it.py", {"tests/test_it.py": text}) == expected
    assert devices_of("tests/test_it.py", {"tests/test_it.py": text, "peft/__init__.py": library}) == expected


def test_a_model_is_put_where_its_map_of_devices_says_and_by_auto_on_what_is_there():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            from peft import PeftModel
            from transformers import AutoModel, BitsAndBytesConfig

            def test_auto():
                AutoModel.from_pretrained("m", device_map="auto")

            def test_first():
                AutoModel.from_pretrained("m", device_map={"": 0})

            def test_second():
                PeftModel.from_pretrained(AutoModel.from_pretrained("m"), "n", device_map="cuda:1")

            def test_parts():
                AutoModel.from_pretrained("m", device_map={"embed": 0, "head": "cuda:2", "rest": "disk", "more": "cpu"})

            def test_host():
                AutoModel.from_pretrained("m", device_map="cpu")
                AutoModel.from_pretrained("m", device_map={"": "meta"})
                AutoModel.from_pretrained("m", device_map=None)
                BitsAndBytesConfig(device_map="auto")

            def test_auto_within_limits():
                limits = {0: 2**20, 2: "1GiB", "cpu": "2GiB"}
                AutoModel.from_pretrained("m", device_map="auto", max_memory=limits)

            def test_auto_on_the_second():
                AutoModel.from_pretrained("m", device_map="sequential", max_memory={0: 0, 1: "1GiB"})
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_auto": (0, 1, 1),
        "test_auto_within_limits": (0, 3, 3),
        "test_auto_on_the_second": (0, 2, 2),
        "test_first": (1, 1, 1),
        "test_second": (2, 2, 2),
        "test_parts": (3, 3, 3),
        "test_host": (0, None, 0),
    }
    assert found["test_auto"].confidence == "medium"  # on how many it is, is not known
    assert found["test_auto_within_limits"].confidence == "high"


PIPELINES = """
    from transformers import pipeline
    from transformers.pipelines import pipeline as made

    def test_told_nothing():
        pipeline(task="fill-mask", model="m", top_k=2)

    def test_told_the_host():
        pipeline("fill-mask", model="m", device="cpu")
        made(model="m", device=-1)

    def test_told_the_second():
        made("fill-mask", model="m", device=1)

    def test_spread():
        pipeline("fill-mask", model="m", device_map="auto")
    """


def test_a_pipeline_of_transformers_that_is_told_no_device_takes_the_first_one_since_its_version_does():
    told = {"test_told_the_host": (0, None, 0), "test_told_the_second": (2, 2, 2), "test_spread": (0, 1, 1)}
    installed = {"tests/test_it.py": PIPELINES}
    assert devices_of("tests/test_it.py", installed) == told | {"test_told_nothing": (0, 1, 1)}

    def in_its_tree(default):
        made = """
            from transformers.pipelines.base import Pipeline

            def pipeline(task=None, model=None, device=None, device_map=None, **more):
                return Pipeline(model=model, device=device, **more)
            """
        base = f"""
            class Pipeline:
                def __init__(self, model, device=None, **more):
                    if device is None:
                        device = {default}
                    self.device = device
            """
        library = {
            "src/transformers/__init__.py": "from transformers.pipelines import pipeline\n",
            "src/transformers/pipelines/__init__.py": made,
            "src/transformers/pipelines/base.py": base,
        }
        return devices_of("tests/test_it.py", library | installed)

    assert in_its_tree("0") == told | {"test_told_nothing": (0, 1, 1)}
    assert in_its_tree("-1") == told | {"test_told_nothing": (0, None, 0)}


def test_a_loader_that_accelerate_prepares_gives_batches_on_the_device():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            from accelerate import Accelerator

            class Loop:
                def __init__(self):
                    self.accelerator = Accelerator()
                    self.loader = self.accelerator.prepare_data_loader([1, 2])

            def test_loader():
                assert next(iter(Loop().loader)) == 1

            def test_host():
                Accelerator(cpu=True)
            """
        },
    )
    assert found == {"test_loader": (0, 1, 1), "test_host": (0, None, 0)}


def test_degrees_of_vllms_that_are_more_than_the_devices_are_refused_where_nothing_says_what_runs_them():
    record = """
    from vllm.config.utils import config

    @config
    class ParallelConfig:
        pipeline_parallel_size: int = 1
        tensor_parallel_size: int = 1

        def __post_init__(self):
            raise ValueError({what!r})
    """
    tests = """
    from unittest.mock import patch

    import pytest
    from vllm.config import ParallelConfig, VllmConfig
    from vllm.platforms import current_platform

    def test_as_if_there_were_four():
        with patch.object(current_platform, "device_count", return_value=4):
            ParallelConfig(tensor_parallel_size=4)

    @pytest.mark.parametrize("degree", [1, 2])
    def test_degrees(degree):
        VllmConfig(parallel_config=ParallelConfig(tensor_parallel_size=degree, pipeline_parallel_size=degree))

    def test_said():
        ParallelConfig(tensor_parallel_size=4, distributed_executor_backend="mp")
    """
    files = {
        "vllm/__init__.py": "",
        "vllm/config/__init__.py": "from vllm.config.parallel import ParallelConfig",
        "tests/test_it.py": tests,
    }
    runs = dict.fromkeys(("0", "1", "2", "3", "4", "8"), "run")
    for refusal in ("World size is larger than the number of GPUs", "cannot be larger than the number of GPUs"):
        files["vllm/config/parallel.py"] = record.format(what=refusal)  # as different versions say it
        found = needs_of("tests/test_it.py", files)
        assert {name: each.profile for name, each in found.items()} == {
            "test_as_if_there_were_four": runs,
            "test_degrees[1]": runs,
            "test_degrees[2]": runs | dict.fromkeys(("1", "2", "3"), "fail"),
            "test_said": runs,
        }
    files["vllm/config/parallel.py"] = record.format(what="Unable to load Ray")  # an older version asks Ray
    found = needs_of("tests/test_it.py", files)
    assert {name: each.profile for name, each in found.items()} == dict.fromkeys(found, runs)


def test_what_a_platform_of_vllms_supports_it_does_where_there_is_a_device():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest
            import torch
            from vllm.platforms import current_platform

            requires_fp8 = pytest.mark.skipif(not current_platform.supports_fp8(), reason="FP8 is not supported")

            @pytest.mark.skipif(not current_platform.support_static_graph_mode(), reason="no graphs")
            def test_graphs():
                pass

            @requires_fp8
            def test_fp8():
                torch.ones(3)

            def test_collectives():
                if not current_platform.use_custom_allreduce():
                    pytest.skip("no collectives")
            """
        },
    )
    assert found == dict.fromkeys(("test_graphs", "test_fp8", "test_collectives"), (1, 1, 1))


def test_without_a_device_vllms_platform_cannot_say_what_the_device_is():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            from vllm.platforms import current_platform

            def test_memory():
                assert current_platform.get_device_total_memory() > 2**30

            def test_name():
                if "h100" in current_platform.get_device_name().lower():
                    return

            def test_second():
                assert current_platform.get_device_name(1)

            def test_used():
                assert current_platform.get_current_memory_usage(torch.device("cuda:0")) >= 0
            """
        },
    )
    assert found == {"test_memory": (1, 1, 1), "test_name": (1, 1, 1), "test_second": (2, 2, 2), "test_used": (1, 1, 1)}


def test_chex_makes_a_test_of_each_way_to_run_a_function_and_one_way_is_over_all_devices():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import chex
            import jax.numpy as jnp
            from absl.testing import parameterized

            class TestIt(chex.TestCase):
                @chex.all_variants
                def test_all(self):
                    self.variant(lambda x: x + 1)(jnp.ones(3))

                @chex.variants(with_jit=True, with_pmap=True)
                @parameterized.named_parameters(("one", 1))
                def test_named(self, number):
                    self.variant(lambda x: x + number)(jnp.ones(3))

                @chex.variants(without_jit=True)
                @parameterized.parameters((1, "a"), dict(number=2, text=None), (jnp.ones, "b"))
                def test_rows(self, number, text):
                    self.variant(lambda x: x)(jnp.ones(3))

                @chex.all_variants(with_device=False, without_device=False, with_pmap=False)
                @parameterized.product(number=[1, 2])
                def test_product(self, number):
                    self.variant(lambda x: x)(jnp.ones(3))

                @parameterized.parameters((1,))
                def test_plain(self, number):
                    jnp.ones(number)
            """
        },
    )
    one, all_of_them = (0, 1, 1), (2, 2, 8)
    assert found == {
        "TestIt::test_all__with_jit": one,
        "TestIt::test_all__without_jit": one,
        "TestIt::test_all__with_device": one,
        "TestIt::test_all__without_device": one,
        "TestIt::test_all__with_pmap": all_of_them,
        "TestIt::test_named_one__with_jit": one,
        "TestIt::test_named_one__with_pmap": all_of_them,
        "TestIt::test_rows_(1, 'a')__without_jit": one,
        "TestIt::test_rows_(number=2, text=None)__without_jit": one,
        "TestIt::test_rows2__without_jit": one,
        "TestIt::test_product_(number=1)__with_jit": one,
        "TestIt::test_product_(number=1)__without_jit": one,
        "TestIt::test_product_(number=2)__with_jit": one,
        "TestIt::test_product_(number=2)__without_jit": one,
        "TestIt::test_plain0": one,
    }


def test_a_function_that_chex_compiles_or_gives_arrays_of_devices_runs_on_the_first_one():
    found = devices_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": "",
            "lib/checking.py": """
            import jax
            from absl.testing import parameterized

            class Checked(parameterized.TestCase):
                def setUp(self):
                    super().setUp()
                    self.key = jax.random.PRNGKey(0)
            """,
            "tests/test_it.py": """
            import chex
            import numpy as np
            from absl.testing import parameterized
            from lib import checking, outside

            class TestIt(parameterized.TestCase):
                @chex.all_variants()
                def test_all(self):
                    self.variant(outside)(np.ones(3))

            class TestKey(checking.Checked):
                def test_key(self):
                    assert self.key is not None
            """,
        },
    )
    one, host = (0, 1, 1), (0, None, 0)
    assert found == {
        "TestIt::test_all__with_jit": one,
        "TestIt::test_all__without_jit": host,
        "TestIt::test_all__with_device": one,
        "TestIt::test_all__without_device": host,
        "TestIt::test_all__with_pmap": (2, 2, 8),
        "TestKey::test_key": one,
    }


def test_a_replica_for_each_rank_is_one_whatever_its_class_is_called():
    found = devices_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": """
            from torch.nn.parallel import DataParallel, DistributedDataParallel

            class AdaptiveDataParallel(DistributedDataParallel):
                def __init__(self, model, optimizer):
                    super().__init__(model)

            class TimedDataParallel(DataParallel):
                pass
            """,
            "tests/test_it.py": """
            import torch
            from lib import AdaptiveDataParallel, TimedDataParallel

            def test_ranks():
                AdaptiveDataParallel(torch.nn.Linear(1, 1), "sgd")

            def test_replicas():
                TimedDataParallel(torch.nn.Linear(1, 1))
            """,
        },
    )
    assert found == {"test_ranks": (0, None, 0), "test_replicas": (0, 1, 8)}


def test_a_product_of_absls_has_the_rows_that_it_is_given_beside_other_parameters():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            from absl.testing import parameterized

            ROWS = [dict(name="sgd", device="cpu"), {"name": "adam", "device": "cuda"}]

            class TestIt(parameterized.TestCase):
                @parameterized.product(ROWS, size=[1, 2])
                def test_rows(self, name, device, size):
                    torch.zeros(size, device=device)
            """
        },
    )
    host, one = (0, None, 0), (1, 1, 1)
    assert found == {f"TestIt::test_rows{number}": (host, host, one, one)[number] for number in range(4)}


def test_lightnings_trainer_takes_all_devices_in_its_own_tree_where_it_runs_and_is_told_nothing():
    trainer = """
    from lightning.pytorch.trainer.states import TrainerState

    class Trainer:
        def __init__(self, *, accelerator: str = "auto", strategy="auto", devices: str = "auto", num_nodes=1, **more):
            self.max_epochs = more.get("max_epochs")

        def fit(self, model):
            self.state = TrainerState()
    """
    found = devices_of(
        "tests/test_it.py",
        {
            "src/lightning/__init__.py": "",
            "src/lightning/pytorch/__init__.py": "from lightning.pytorch.trainer import Trainer",
            "src/lightning/pytorch/trainer/__init__.py": "from lightning.pytorch.trainer.trainer import Trainer",
            "src/lightning/pytorch/trainer/trainer.py": trainer,
            "src/lightning/pytorch/trainer/states.py": "class TrainerState: pass",
            "tests/test_it.py": """
            import pytest
            from lightning.pytorch import Trainer

            def test_all():
                Trainer(max_epochs=1, strategy="ddp_spawn").fit(object())

            def test_one():
                options = {"max_epochs": 1, "devices": 1}
                Trainer(**options).fit(object())

            def test_two():
                Trainer(devices=2).fit(object())

            def test_host():
                Trainer(accelerator="cpu", devices=2).fit(object())

            def test_only_made():
                assert Trainer(max_epochs=3).max_epochs == 3

            def test_refused():
                trainer = Trainer()
                with pytest.raises(ValueError, match="no loader"):
                    trainer.fit(object())

            def test_a_strategy_of_its_own():
                Trainer(strategy=object()).fit(object())
            """,
        },
    )
    assert found == {
        "test_all": (0, 1, 8),
        "test_one": (0, 1, 1),
        "test_two": (0, 2, 2),
        "test_host": (0, None, 0),
        "test_only_made": (0, None, 0),
        "test_refused": (0, None, 0),
        "test_a_strategy_of_its_own": (0, None, 0),
    }


def test_lightnings_fabric_takes_devices_in_its_own_tree_where_it_sets_something_up_and_is_told_nothing():
    fabric = """
    class Fabric:
        def __init__(self, *, accelerator="auto", strategy="auto", devices="auto", num_nodes=1, **more):
            self.precision = more.get("precision")

        def launch(self, function=None, *args):
            return function(self, *args) if function is not None else None

        def setup(self, module, *optimizers):
            return module
    """
    found = devices_of(
        "tests/test_it.py",
        {
            "src/lightning/__init__.py": "",
            "src/lightning/fabric/__init__.py": "from lightning.fabric.fabric import Fabric",
            "src/lightning/fabric/fabric.py": fabric,
            "tests/test_it.py": """
            from unittest.mock import Mock
            from lightning.fabric import Fabric

            class Runner(Fabric):
                def run(self):
                    self.setup(object())

            def test_one():
                Fabric(devices=1).setup(object())

            def test_all():
                Fabric().launch()

            def test_of_the_tests():
                Runner(devices=2).run()

            def test_host():
                Fabric(accelerator="cpu", devices=2).launch(lambda fabric: None)

            def test_only_made():
                assert Fabric(precision="16").precision == "16"

            def test_a_strategy_of_its_own():
                Fabric(strategy=Mock()).setup(object())
            """,
        },
    )
    assert found == {
        "test_one": (0, 1, 1),
        "test_all": (0, 1, 8),
        "test_of_the_tests": (0, 2, 2),
        "test_host": (0, None, 0),
        "test_only_made": (0, None, 0),
        "test_a_strategy_of_its_own": (0, None, 0),
    }


def test_lightnings_trainer_and_fabric_take_the_devices_that_they_are_told_or_all():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import lightning as L
            import pytest
            import pytorch_lightning as pl
            from lightning.fabric import Fabric
            from lightning.pytorch.trainer import Trainer
            from ray_lightning import RayStrategy

            class Model(pl.LightningModule):
                pass

            def test_two_of_any_kind():
                trainer = pl.Trainer(max_epochs=3, devices=2)
                trainer.fit(Model())
                assert trainer.global_rank == 0

            @pytest.mark.parametrize("accelerator", ["cpu", "gpu"])
            def test_kind(accelerator):
                pl.Trainer(accelerator=accelerator, devices=2).predict(Model())

            def test_numbers():
                pl.Trainer(accelerator="gpu", devices=[0, 2]).validate(Model())

            def test_old():
                pl.Trainer(gpus=2)

            def test_all():
                L.Trainer(max_epochs=1).fit(Model())

            def test_all_by_its_module():
                Trainer(max_epochs=1).fit(Model())

            def test_only_made():
                L.Trainer(max_epochs=1)

            def test_chosen_by_others():
                pl.Trainer(strategy=RayStrategy(num_workers=2)).fit(Model())

            def test_fabric():
                fabric = L.Fabric(devices=2, accelerator="cuda", strategy="ddp")
                fabric.setup(Model())

            def test_one():
                Fabric(devices=1).setup(Model())

            def test_launched():
                Fabric(accelerator="cpu", devices=2).launch(lambda fabric: Model())
            """
        },
    )
    assert found == {
        "test_two_of_any_kind": (0, 2, 2),
        "test_kind[cpu]": (0, None, 0),
        "test_kind[gpu]": (2, 2, 2),
        "test_numbers": (3, 3, 3),
        "test_old": (2, 2, 2),
        "test_all": (0, 1, 8),
        "test_all_by_its_module": (0, 1, 8),
        "test_only_made": (0, None, 0),
        "test_chosen_by_others": (0, None, 0),
        "test_fabric": (2, 2, 2),
        "test_one": (0, 1, 1),
        "test_launched": (0, None, 0),
    }


def test_tensorflow_lists_its_devices_with_the_host_and_has_names_of_its_own_for_them():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/replicas.py": """
            import tensorflow as tf

            class Replicator(tf.distribute.MirroredStrategy):
                pass
            """,
            "tests/test_it.py": """
            import pytest
            import tensorflow as tf
            from acme.replicas import Replicator

            class Base(tf.test.TestCase):
                def setUp(self):
                    super().setUp()
                    self.kinds = frozenset(d.device_type for d in tf.config.experimental.list_logical_devices())
                    self.device = tf.device("/device:%s:0" % self.kind)
                    self.device.__enter__()

                @property
                def kind(self):
                    return "TPU" if "TPU" in self.kinds else "GPU" if "GPU" in self.kinds else "CPU"

            class Test(Base):
                def test_tpu(self):
                    if self.kind != "TPU":
                        self.skipTest("TPUs only")

                def test_gpu(self):
                    if self.kind == "CPU":
                        self.skipTest("no devices")

                def test_any(self):
                    pass

            def test_second():
                if len(tf.config.list_physical_devices("GPU")) < 2:
                    pytest.skip("two")
                with tf.device("/GPU:1"):
                    tf.ones(2)

            def test_listed():
                with tf.device((tf.config.list_logical_devices("GPU") + tf.config.list_logical_devices())[0]):
                    tf.ones(2)

            def test_second_of_those_listed():
                with tf.device(tf.config.list_logical_devices()[2]):
                    tf.ones(2)

            def test_mirrored():
                tf.distribute.MirroredStrategy()

            def test_mirrored_on_two():
                tf.distribute.MirroredStrategy(["/gpu:0", "/job:localhost/replica:0/task:0/device:GPU:1"])

            def test_mirrored_on_the_host():
                tf.distribute.MirroredStrategy(["/cpu:0"])

            def test_mirrored_by_the_library():
                kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
                Replicator(devices=[d.name for d in tf.config.list_logical_devices(device_type=kind)])

            def test_growth():
                for each in tf.config.list_physical_devices("GPU"):
                    tf.config.experimental.set_memory_growth(each, True)

            def test_sum():
                assert tf.reduce_sum([1, 2]) == 3
            """,
        },
    )
    assert found == {
        "Test::test_tpu": (None, None, None),
        "Test::test_gpu": (1, 1, 1),
        "Test::test_any": (0, 1, 1),
        "test_second": (2, 2, 2),
        "test_listed": (0, 1, 1),
        "test_second_of_those_listed": (2, 2, 2),
        "test_mirrored": (0, 1, 8),
        "test_mirrored_on_two": (2, 2, 2),
        "test_mirrored_on_the_host": (0, None, 0),
        "test_mirrored_by_the_library": (0, 1, 8),
        "test_growth": (0, None, 0),
        "test_sum": (0, 1, 1),
    }


def test_how_often_tensorflow_traces_a_function_is_not_known():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest
            import tensorflow as tf

            def test_traced():
                seen = []

                @tf.function(autograph=False)
                def compute():
                    seen.append(tf.ones(2))

                compute()
                if len(seen) == 1:
                    pytest.skip("no variables were made")
                assert len(seen) == 2

            def test_called():
                seen = []

                def compute():
                    seen.append(tf.ones(2))

                compute()
                if len(seen) == 1:
                    pytest.skip("once")
            """
        },
    )
    assert found == {"test_traced": (0, 1, 1), "test_called": (None, None, None)}


def test_the_trainer_of_transformers_takes_all_devices_where_nobody_launched_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/run.py": """
            from transformers import Trainer, TrainingArguments

            Trainer(model=object(), args=TrainingArguments("out")).train()
            """,
            "tests/test_it.py": """
            import subprocess
            from pathlib import Path

            import pytest
            import transformers
            from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, Trainer, TrainingArguments

            class Own(Trainer):
                def compute_loss(self, model, inputs, **more):
                    return super().compute_loss(model, inputs, **more)

            def test_trains(tmp_path):
                trainer = Trainer(model=object(), args=TrainingArguments(output_dir=tmp_path))
                trainer.train()
                assert trainer.state.log_history[-1]["train_loss"] is not None

            def test_own(tmp_path):
                Own(object(), TrainingArguments(tmp_path)).evaluate()

            def test_without_arguments():
                transformers.Trainer(model=object()).predict([1])

            def test_from_text_to_text(tmp_path):
                Seq2SeqTrainer(model=object(), args=Seq2SeqTrainingArguments(tmp_path)).train()

            def test_searches(tmp_path):
                trainer = Trainer(args=TrainingArguments(tmp_path), model_init=lambda trial: object())
                trainer.hyperparameter_search(direction="minimize", n_trials=4)

            def test_only_made(tmp_path):
                Trainer(model=object(), args=TrainingArguments(tmp_path))

            def test_arguments_only(tmp_path):
                assert TrainingArguments(tmp_path, max_steps=3).max_steps == 3

            @pytest.mark.parametrize("use_cpu", [False, True])
            def test_kind(tmp_path, use_cpu):
                Trainer(model=object(), args=TrainingArguments(tmp_path, use_cpu=use_cpu)).train()

            def test_on_the_host_as_it_was_called(tmp_path):
                Trainer(model=object(), args=TrainingArguments(tmp_path, no_cuda=True)).train()

            def test_parts_on_two(tmp_path):
                model = transformers.AutoModel.from_pretrained("opt", device_map={"first": 0, "second": 1})
                Trainer(model=model, args=TrainingArguments(tmp_path)).train()

            def test_half(tmp_path):
                Trainer(model=object(), args=TrainingArguments(tmp_path, bf16=True)).train()

            def test_in_mixed_precision(tmp_path):
                Trainer(model=object(), args=TrainingArguments(tmp_path, fp16=True)).train()

            def test_mixed_precision_is_only_said(tmp_path):
                assert TrainingArguments(tmp_path, fp16=True).fp16

            def test_launched():
                subprocess.run(["torchrun", "--nproc_per_node=2", Path(__file__).parent / "run.py"], check=True)
            """,
        },
    )
    all_of_them, host = (0, 1, 8), (0, None, 0)
    assert found == {
        "test_trains": all_of_them,
        "test_own": all_of_them,
        "test_without_arguments": all_of_them,
        "test_from_text_to_text": all_of_them,
        "test_searches": all_of_them,
        "test_only_made": (0, 1, 1),
        "test_arguments_only": (0, 1, 1),
        "test_kind[False]": all_of_them,
        "test_kind[True]": host,
        "test_on_the_host_as_it_was_called": host,
        "test_parts_on_two": (2, 2, 2),
        "test_half": (1, 1, 8),
        "test_in_mixed_precision": (1, 1, 8),
        "test_mixed_precision_is_only_said": (0, 1, 1),
        "test_launched": (0, 2, 2),
    }


def test_the_trainer_of_transformers_in_a_process_that_acts_as_one_rank_takes_that_ranks_device():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import os
            from unittest import mock

            from transformers import Trainer, TrainingArguments

            ONE_RANK = {"MASTER_ADDR": "localhost", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}

            def train(**options):
                Trainer(model=object(), args=TrainingArguments("out", **options)).train()

            def test_alone():
                train()

            def test_as_a_launcher_would_have_it():
                with mock.patch.dict(os.environ, ONE_RANK):
                    train()

            def test_of_another_device():
                with mock.patch.dict(os.environ, {**ONE_RANK, "LOCAL_RANK": "2"}):
                    train()

            def test_with_deepspeed():
                train(deepspeed={"zero_optimization": {"stage": 2}})

            def test_with_what_is_made_for_deepspeed(settings):
                train(deepspeed=settings)

            def test_as_arguments_said_it():
                train(local_rank=0)

            def test_without_any_of_it():
                train(deepspeed=None, local_rank=-1)

            def test_told_to_take_one():
                args = TrainingArguments("out")
                args._n_gpu = 1
                Trainer(model=object(), args=args).train()

            def test_with_a_model_that_is_on_several():
                class Model:
                    is_parallelizable = True
                    model_parallel = True

                trainer = Trainer(model=Model(), args=TrainingArguments("out"))
                assert trainer.is_model_parallel
                assert trainer.args.n_gpu == min(trainer.args.n_gpu, 1)
                trainer.train()
            """
        },
    )
    assert found == {
        "test_alone": (0, 1, 8),
        "test_as_a_launcher_would_have_it": (0, 1, 1),
        "test_of_another_device": (0, 3, 3),
        "test_with_deepspeed": (0, 1, 1),
        "test_with_what_is_made_for_deepspeed": (0, 1, 1),
        "test_as_arguments_said_it": (0, 1, 1),
        "test_without_any_of_it": (0, 1, 8),
        "test_told_to_take_one": (0, 1, 1),
        "test_with_a_model_that_is_on_several": (0, 1, 1),
    }


def test_a_program_that_a_test_imports_trains_as_one_that_it_starts():
    program = """
        from transformers import HfArgumentParser, Seq2SeqTrainer, Seq2SeqTrainingArguments

        def main():
            (arguments,) = HfArgumentParser(Seq2SeqTrainingArguments).parse_args_into_dataclasses()
            trainer = Seq2SeqTrainer(model=object(), args=arguments)
            if arguments.do_train:
                trainer.train()

        if __name__ == "__main__":
            main()
        """
    text = """
        import os
        import sys
        from unittest.mock import patch

        from acme.testing import ExtendSysPath

        here = os.path.abspath(os.path.dirname(__file__))
        with ExtendSysPath(f"{here}/../../examples/translation"):
            from run_translation import main

        def test_called():
            with patch.object(sys, "argv", ["run_translation.py", "--do_train"]):
                main()

        def test_as_one_rank():
            with patch.dict(os.environ, {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}):
                main()

        def test_only_imported():
            assert callable(main)
        """
    files = {
        "tests/extended/test_it.py": text,
        "examples/translation/run_translation.py": program,
        "examples/summaries/run_translation.py": "def main(): ...",
    }
    assert devices_of("tests/extended/test_it.py", files) == {
        "test_called": (0, 1, 8),
        "test_as_one_rank": (0, 1, 1),
        "test_only_imported": (0, None, 0),
    }


def test_ranks_of_a_program_with_any_trainer_of_transformers_or_trl_have_a_device_each():
    def found(program: str) -> dict[str, tuple[int | None, int | None, int | None]]:
        text = """
        import os
        import subprocess

        def test_started():
            here = os.path.dirname(__file__)
            subprocess.run(["torchrun", "--nproc_per_node=2", f"{here}/../examples/train.py"], check=True)
        """
        return devices_of("tests/test_it.py", {"tests/test_it.py": text, "examples/train.py": program})

    ranks = {"test_started": (0, 2, 2)}
    assert found("from transformers import Seq2SeqTrainer\n\nSeq2SeqTrainer(model=object()).train()\n") == ranks
    assert found("from trl import SFTTrainer\n\nSFTTrainer(model='small').train()\n") == ranks
    assert found("from transformers import AutoConfig\n\nAutoConfig.trained()\n") == {"test_started": (0, None, 0)}


def test_a_model_of_transformers_that_is_parallelized_is_on_all_devices_or_on_those_that_it_is_told():
    text = """
        import unittest

        import torch
        from transformers import GPT2Config, GPT2LMHeadModel, T5ForConditionalGeneration

        @unittest.skipIf(torch.cuda.device_count() < 2, "two")
        class TestModel(unittest.TestCase):
            classes = (GPT2LMHeadModel, T5ForConditionalGeneration)

            def test_on_all(self):
                for each in self.classes:
                    model = each(GPT2Config())
                    model.parallelize()
                    model(torch.ones(2, 2).to("cuda:0"))

            def test_on_two(self):
                T5ForConditionalGeneration.from_pretrained("t5").parallelize({0: [0, 1], 1: [2, 3]})

            def test_as_far_as_its_layers_go(self):
                GPT2LMHeadModel(GPT2Config(n_layer=3)).parallelize()

            def test_by_default(self):
                T5ForConditionalGeneration(config=GPT2Config(7)).parallelize()

            def test_of_what_was_read(self):
                GPT2LMHeadModel(GPT2Config.from_pretrained("gpt2")).parallelize()

            def test_of_a_number_that_was_set(self):
                config = GPT2Config(7)
                config.n_layer = 4
                GPT2LMHeadModel(config).parallelize()

            def test_somebody_elses(self, context):
                context.parallelize([1, 2, 3])
        """
    library = {
        "src/transformers/__init__.py": """
        from .gpt2 import GPT2Config, GPT2LMHeadModel, T5ForConditionalGeneration
        """,
        "src/transformers/gpt2.py": """
        import torch
        from torch import nn

        class GPT2Config:
            def __init__(self, hidden=8, n_layer=2, **more):
                self.n_layer = n_layer

            @classmethod
            def from_pretrained(cls, name, **more):
                return cls(**cls.downloaded(name))

        class GPT2LMHeadModel(nn.Module):
            def __init__(self, config):
                self.config = config

            def parallelize(self, device_map=None):
                self.device_map = spread(self, range(torch.cuda.device_count())) if device_map is None else device_map

        class T5ForConditionalGeneration(GPT2LMHeadModel):
            pass
        """,
    }
    wanted = {
        "TestModel::test_on_all": (2, 2, 8),
        "TestModel::test_on_two": (2, 2, 2),
        "TestModel::test_as_far_as_its_layers_go": (2, 2, 8),
        "TestModel::test_by_default": (2, 2, 8),
        "TestModel::test_of_what_was_read": (2, 2, 8),
        "TestModel::test_of_a_number_that_was_set": (2, 2, 8),
        "TestModel::test_somebody_elses": (2, 2, 2),
    }
    known = {
        "TestModel::test_on_all": (2, 2, 2),
        "TestModel::test_as_far_as_its_layers_go": (2, 2, 3),
        "TestModel::test_by_default": (2, 2, 2),
        "TestModel::test_of_a_number_that_was_set": (2, 2, 4),
    }
    assert devices_of("tests/test_it.py", {"tests/test_it.py": text}) == wanted
    assert devices_of("tests/test_it.py", library | {"tests/test_it.py": text}) == wanted | known


def test_sessions_and_keras_networks_are_on_tensorflows_first_device_and_there_are_no_tpus():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/testing.py": """
            import tensorflow.compat.v1 as tf

            def evaluated(value):
                return tf.Session().run(value)
            """,
            "tests/test_it.py": """
            from unittest import mock

            import pytest
            import tensorflow as tf
            import tensorflow.compat.v1 as tf1
            import tf_keras
            from acme.testing import evaluated
            from tensorflow.python.eager import context

            def test_session():
                with tf1.Session() as session:
                    session.run(tf1.global_variables_initializer())

            def test_by_the_library():
                evaluated(3)

            def test_network():
                tf_keras.Model(tf_keras.Input(shape=(3,)), None)

            def test_layers_alone():
                tf.keras.layers.Dense(3, activation=tf.keras.activations.relu)

            def test_counted():
                if context.num_gpus() >= 2:
                    pytest.skip("one is enough")
                tf.keras.Sequential([tf.keras.layers.Dense(3)])

            def test_second():
                if context.num_gpus() < 2:
                    pytest.skip("two")

            def test_tpu():
                tf.tpu.experimental.initialize_tpu_system()

            @mock.patch.object(tf.tpu.experimental, "initialize_tpu_system")
            def test_mocked_tpu(initialize):
                tf.tpu.experimental.initialize_tpu_system()
            """,
        },
    )
    assert found == {
        "test_session": (0, 1, 1),
        "test_by_the_library": (0, 1, 1),
        "test_network": (0, 1, 1),
        "test_layers_alone": (0, None, 0),
        "test_counted": (0, 1, 1),
        "test_second": (2, 2, 2),
        "test_tpu": (None, None, None),
        "test_mocked_tpu": (0, None, 0),
    }


def test_combinations_of_tensorflows_strategies_are_tests_with_its_names_and_need_what_their_strategy_does():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import tensorflow as tf
            from absl.testing import parameterized
            from tensorflow.python.distribute import combinations, strategy_combinations

            def all_strategies():
                return combinations.combine(
                    distribution=[
                        strategy_combinations.default_strategy,
                        strategy_combinations.cloud_tpu_strategy,
                        strategy_combinations.one_device_strategy_gpu,
                        strategy_combinations.mirrored_strategy_with_two_gpus,
                    ],
                    mode="eager",
                )

            def fast():
                return combinations.combine(fast=True)

            class Test(tf.test.TestCase, parameterized.TestCase):
                @combinations.generate(all_strategies())
                def test_it(self, distribution):
                    with distribution.scope():
                        tf.keras.Sequential([tf.keras.layers.Dense(3)])

                @combinations.generate(combinations.times(combinations.combine(size=[2, 3]), fast()))
                def test_sizes(self, size, fast):
                    assert size > 1 and fast
            """
        },
    )
    assert found == {
        "Test::test_it_test_distribution_Default_mode_eager": (0, 1, 1),
        "Test::test_it_test_distribution_CloudTPU_mode_eager": (None, None, None),
        "Test::test_it_test_distribution_OneDeviceGPU_mode_eager": (1, 1, 1),
        "Test::test_it_test_distribution_Mirrored2GPUs_mode_eager": (2, 2, 2),
        "Test::test_sizes_test_fast_True_size_2": (0, None, 0),
        "Test::test_sizes_test_fast_True_size_3": (0, None, 0),
    }


def test_combinations_of_a_class_in_tensorflows_own_tree_are_tests_and_so_are_numbers_of_gpus_that_they_require():
    found = devices_of(
        "tensorflow/python/distribute/values_test.py",
        {
            "tensorflow/python/distribute/values_test.py": """
            from absl.testing import parameterized
            from tensorflow.python.distribute import combinations, mirrored_strategy, strategy_combinations
            from tensorflow.python.eager import context
            from tensorflow.python.framework import constant_op, ops, test_util
            from tensorflow.python.ops import variables
            from tensorflow.python.platform import test

            @combinations.generate(
                combinations.combine(
                    distribution=[
                        strategy_combinations.central_storage_strategy_with_two_gpus,
                        strategy_combinations.multi_worker_mirrored_2x1_gpu,
                    ],
                    synchronization=[variables.VariableSynchronization.ON_READ],
                    mode=["graph"]))
            class VariableTest(test.TestCase, parameterized.TestCase):
                def testMade(self, distribution, synchronization):
                    with distribution.scope():
                        variables.Variable(1.0, synchronization=synchronization)

            class CopyTest(test.TestCase, parameterized.TestCase):
                @combinations.generate(combinations.combine(mode=["eager"], required_gpus=2))
                def testCopied(self):
                    with ops.device("/gpu:1"):
                        constant_op.constant(1.0)

                def testCounted(self):
                    if not test.is_gpu_available():
                        self.skipTest("no GPU")
                    constant_op.constant(1.0)

                @test_util.run_gpu_only
                def testMarked(self):
                    with context.device("/device:GPU:0"):
                        constant_op.constant(1.0)

                def testBuilt(self):
                    with ops.Graph().as_default(), ops.device("/gpu:0"):
                        pass

                def testOnAll(self):
                    mirrored_strategy.MirroredStrategy(mirrored_strategy.all_local_devices())
            """
        },
    )
    mode = "mode_graph_synchronization_VariableSynchronizationONREAD"
    assert found == {
        f"VariableTest::testMade_test_distribution_CentralStorage2GPUs_{mode}": (2, 2, 2),
        f"VariableTest::testMade_test_distribution_MultiWorkerMirrored2x1GPU_{mode}": (1, 1, 1),
        "CopyTest::testCopied_test_mode_eager_requiredgpus_2": (2, 2, 2),
        "CopyTest::testCounted": (1, 1, 1),
        "CopyTest::testMarked": (1, 1, 1),
        "CopyTest::testBuilt": (0, 1, 1),
        "CopyTest::testOnAll": (0, 1, 8),
    }


def test_trainers_of_trl_take_all_devices_in_its_own_tree_and_where_it_is_not_there():
    text = """
        from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

        def test_trained():
            SFTTrainer("model", args=SFTConfig(output_dir="x")).train()

        def test_on_the_host():
            DPOTrainer("model", ref_model=None, args=DPOConfig(output_dir="x", use_cpu=True)).train()
        """
    library = {
        "trl/__init__.py": "from .trainer import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer",
        "trl/trainer.py": """
        from transformers import Trainer, TrainingArguments

        class SFTConfig(TrainingArguments):
            pass

        class SFTTrainer(Trainer):
            def __init__(self, model, args=None, **more):
                self.processed = unheard_of(model, args)
                super().__init__(model=self.processed, args=args)

        class DPOConfig(TrainingArguments):
            pass

        class DPOTrainer(Trainer):
            pass
        """,
    }
    wanted = {"test_trained": (0, 1, 8), "test_on_the_host": (0, None, 0)}
    assert devices_of("tests/test_it.py", {"tests/test_it.py": text}) == wanted
    assert devices_of("tests/test_it.py", library | {"tests/test_it.py": text}) == wanted


def test_the_trainer_of_transformers_takes_all_devices_in_its_own_tree_too():
    found = devices_of(
        "tests/trainer/test_it.py",
        {
            "src/transformers/__init__.py": """
            import sys
            from typing import TYPE_CHECKING

            from .lazy import LazyModule

            if TYPE_CHECKING:
                from .trainer import Trainer as Trainer
                from .training_args import TrainingArguments as TrainingArguments
            else:
                sys.modules[__name__] = LazyModule(__name__, {"trainer": ["Trainer"]})
            """,
            "src/transformers/lazy.py": "class LazyModule: ...",
            "src/transformers/trainer.py": """
            class Trainer:
                def train(self, resume_from_checkpoint=None): ...
            """,
            "src/transformers/training_args.py": """
            class TrainingArguments: ...
            """,
            "src/acme/transformers/__init__.py": """
            class Trainer:
                def train(self): ...
            """,
            "tests/trainer/test_it.py": """
            from transformers import Trainer, TrainingArguments
            from transformers.trainer import Trainer as Same
            from acme.transformers import Trainer as Other

            def test_trains(tmp_path):
                Trainer(model=object(), args=TrainingArguments(tmp_path)).train()

            def test_by_its_module(tmp_path):
                Same(model=object(), args=TrainingArguments(tmp_path)).train()

            def test_as_many_as_it_says(tmp_path):
                assert TrainingArguments(tmp_path).n_gpu >= 3

            def test_another():
                Other().train()
            """,
        },
    )
    assert found == {
        "test_trains": (0, 1, 8),
        "test_by_its_module": (0, 1, 8),
        "test_as_many_as_it_says": (3, 3, 3),
        "test_another": (0, None, 0),
    }


def test_a_compiled_module_that_a_package_imports_has_its_whole_name():
    found = devices_of(
        "tests/test_it.py",
        {
            "cuvs/__init__.py": "",
            "cuvs/neighbors/__init__.py": "from .search import find\n",
            "tests/test_it.py": "from cuvs.neighbors import find\n\ndef test_it():\n    find()\n",
        },
    )
    assert found == {"test_it": (1, 1, 1)}


def test_what_rapids_makes_is_on_a_device_and_resources_of_several_are_on_all():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cudf
            import pytest
            from cuvs.common import MultiGpuResources
            from cuvs.neighbors import cagra

            def test_frame():
                cudf.DataFrame({"a": [1]})

            def test_said():
                assert cudf.dtype("int32") and cudf.set_option("spill", True) is None

            def test_index():
                cagra.build(cagra.IndexParams(), [[1.0]])

            def test_all():
                MultiGpuResources()

            def test_two():
                MultiGpuResources(device_ids=[0, 1])
            """
        },
    )
    one = dict.fromkeys(("test_frame", "test_index"), (1, 1, 1))
    assert found == one | {"test_said": (0, None, 0), "test_all": (1, 1, 8), "test_two": (2, 2, 2)}


def test_a_mark_that_skips_comes_before_what_a_decorator_needs():
    needs = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            from accelerate.test_utils import require_fp8

            @pytest.mark.skip("not now")
            @require_fp8
            def test_eight_bits():
                pass
            """
        },
    )["test_eight_bits"]
    assert {each.value for each in needs.profile.values()} == {"skip"}


def test_colossalais_mesh_fails_without_its_ranks_and_a_cache_is_only_emptied_where_a_mark_does_not_skip():
    found = {
        name: (needs.min, needs.gpu_min, needs.full, next(iter(needs.profile.values())).value)
        for name, needs in needs_of(
            "test_it.py",
            {
                "test_it.py": """
                import pytest
                import torch
                from colossalai.device.device_mesh import DeviceMesh
                from colossalai.initialize import launch
                from colossalai.testing import clear_cache_before_run, spawn

                def work(rank, world_size, port):
                    launch(rank=rank, world_size=world_size, host="localhost", port=port, backend="nccl")
                    DeviceMesh(torch.arange(0, 4), (2, 2), init_process_group=True)

                def test_four():
                    spawn(work, 4)

                def test_one():
                    spawn(work)

                def test_ids():
                    DeviceMesh(torch.arange(0, 4), (2, 2))

                @clear_cache_before_run()
                def test_cache():
                    DeviceMesh(torch.arange(0, 4), (2, 2))

                @pytest.mark.skip("not now")
                @clear_cache_before_run()
                def test_skipped():
                    pass
                """
            },
        ).items()
    }
    assert found == {
        "test_four": (4, 4, 4, "fail"),
        "test_one": (None, None, None, "fail"),
        "test_ids": (0, None, 0, "run"),
        "test_cache": (1, 1, 1, "fail"),
        "test_skipped": (None, None, None, "skip"),
    }


def test_a_pool_of_pinned_memory_with_an_allocator_of_the_tests_own_needs_no_device():
    found = devices_of(
        "test_pool.py",
        {
            "test_pool.py": """
            from cupy.cuda import pinned_memory

            class Fake(pinned_memory.PinnedMemory):
                def __init__(self, size):
                    self.ptr = 1
                    self.size = size

            def allocate(size):
                return pinned_memory.PinnedMemoryPointer(Fake(size), 0)

            def test_pool():
                pool = pinned_memory.PinnedMemoryPool(allocator=allocate)
                pool.malloc(1000)
                pool.free_all_blocks()

            def test_memory():
                pinned_memory.PinnedMemory(1000)
            """
        },
    )
    assert found == {"test_pool": (0, None, 0), "test_memory": (1, 1, 1)}


def test_cuda_pythons_devices_are_those_that_are_there_and_what_it_makes_is_on_one():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cuda.core.experimental as cuda_core
            import pytest
            import rmm
            from cuda import cudart
            from cuda.bindings import driver, nvrtc, runtime
            from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch, system

            def check(result):
                error, *rest = result
                return rest[0] if len(rest) == 1 else tuple(rest)

            def test_current():
                Device().set_current()

            def test_second():
                with pytest.raises(ValueError):
                    Device(0).resources.take(-1)
                Device(1).create_stream()

            def test_asked():
                assert Device().compute_capability >= (7, 0)

            def test_experimental():
                cuda_core.Device(2).allocate(16)

            def test_all():
                for device in Device.get_all_devices():
                    device.sync()

            @pytest.mark.skipif(system.get_num_devices() < 2, reason="two devices")
            def test_counted():
                Device(1).sync()

            def test_compiled():
                Program("code", "c++").compile("cubin")

            def test_compiled_for_another():
                Program("code", "c++", ProgramOptions(arch="sm_90")).compile("cubin")

            def test_described():
                LaunchConfig(grid=1, block=2)

            def test_runtime():
                runtime.cudaMalloc(16)

            def test_old_names():
                cudart.cudaSetDevice(1)

            def test_driver():
                driver.cuInit(0)

            def test_fourth():
                if check(runtime.cudaGetDeviceCount()) < 4:
                    pytest.skip("four devices")
                runtime.cudaSetDevice(3)

            def test_text():
                nvrtc.nvrtcCreateProgram(b"", b"", 0, [], [])
                runtime.cudaGetErrorString(2)
                driver.CUstream(0)

            def test_buffer():
                rmm.DeviceBuffer(size=10)
            """
        },
    )
    assert found == {
        "test_current": (1, 1, 1),
        "test_second": (2, 2, 2),
        "test_asked": (1, 1, 1),
        "test_experimental": (3, 3, 3),
        "test_all": (0, 1, 8),
        "test_counted": (2, 2, 2),
        "test_compiled": (1, 1, 1),
        "test_compiled_for_another": (0, None, 0),
        "test_described": (0, None, 0),
        "test_runtime": (1, 1, 1),
        "test_old_names": (2, 2, 2),
        "test_driver": (1, 1, 1),
        "test_fourth": (4, 4, 4),
        "test_text": (0, None, 0),
        "test_buffer": (1, 1, 1),
    }


def test_devices_that_a_function_of_accelerates_is_given_without_their_name_are_used():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            from accelerate import cpu_offload, disk_offload, dispatch_model, load_checkpoint_and_dispatch
            from fairscale.nn.pipe import Pipe

            def test_dispatched(model):
                dispatch_model(model, {"a": 0, "b": 1})

            def test_dispatched_in_part(model):
                dispatch_model(model, {"a": "cpu", "b": 0})

            def test_dispatched_by_name(model):
                dispatch_model(model, device_map={"a": "cuda:2"})

            def test_loaded(model):
                load_checkpoint_and_dispatch(model, "folder", {"": 1})

            def test_offloaded(model):
                cpu_offload(model, 0)
                disk_offload(model, "folder", execution_device=1)

            def test_offloaded_on_the_host(model):
                cpu_offload(model, "cpu")

            def test_named(model):
                Pipe(model, [1, 1], devices=["cuda:2", "cuda:3"])

            def test_of_the_host(model):
                Pipe(model, [1, 1], devices=["cpu", "cpu"])
            """
        },
    )
    assert found == {
        "test_dispatched": (2, 2, 2),
        "test_dispatched_in_part": (1, 1, 1),
        "test_dispatched_by_name": (3, 3, 3),
        "test_loaded": (2, 2, 2),
        "test_offloaded": (2, 2, 2),
        "test_offloaded_on_the_host": (0, None, 0),
        "test_named": (4, 4, 4),
        "test_of_the_host": (0, None, 0),
    }


def test_an_accelerator_whose_environment_tells_it_the_host_is_there():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            from accelerate import Accelerator

            def test_told(monkeypatch):
                monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
                accelerator = Accelerator()
                accelerator.prepare(torch.nn.Linear(1, 1))
                torch.ones(1, device=accelerator.device)

            def test_not_told():
                Accelerator().prepare(torch.nn.Linear(1, 1))
            """
        },
    )
    assert found == {"test_told": (0, None, 0), "test_not_told": (0, 1, 1)}


def test_a_function_that_chooses_the_host_is_no_decorator_that_wants_no_device():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from accelerate.test_utils import require_cpu as marked
            from accelerate.test_utils.testing import require_cpu as marked_too
            from spacy import require_cpu

            def test_chosen():
                require_cpu()

            @marked
            def test_marked():
                torch.ones(1)

            @marked_too
            def test_marked_too():
                torch.ones(1)
            """
        },
    )
    assert {name: (each.profile["0"], each.profile["1"]) for name, each in found.items()} == {
        "test_chosen": ("run", "run"),
        "test_marked": ("run", "skip"),
        "test_marked_too": ("run", "skip"),
    }


def test_frames_that_rapids_compares_may_be_of_the_host():
    text = """
    import cudf
    import elsewhere
    from cudf.testing._utils import assert_eq

    def test_made():
        assert_eq(cudf.DataFrame({"a": [1]}), cudf.DataFrame({"a": [1]}))

    def test_given():
        assert_eq(elsewhere.frame(), elsewhere.frame())
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text})
    assert {name: (each.min, each.confidence.value) for name, each in found.items()} == {
        "test_made": (1, "high"),
        "test_given": (1, "medium"),
    }


def test_actors_of_monarch_are_ranks_and_what_they_are_asked_to_do_is_the_tests():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import os
            import unittest
            import torch
            import torch.distributed as dist
            from monarch.actor import Actor, current_rank, current_size, endpoint, this_host, this_proc

            class Waking(Actor):
                def __init__(self):
                    self.woken = False

                @endpoint
                async def wake(self, names):
                    if torch.cuda.is_available():
                        torch.cuda.init()
                        torch.ones(1, device="cuda")
                        self.woken = True
                    return names

            class Joining(Actor):
                def __init__(self, backend):
                    self.backend = backend
                    self.rank = int(current_rank()["gpus"])
                    self.size = int(current_size()["gpus"])

                @endpoint
                def join(self):
                    dist.init_process_group(self.backend, world_size=self.size, rank=self.rank)

                @endpoint
                async def work(self, device):
                    torch.ones(1).to(f"cuda:{self.rank}" if device == "cuda" else device)
                    return self.rank

            class TestActors(unittest.IsolatedAsyncioTestCase):
                async def test_waking(self):
                    mesh = this_host().spawn_procs(bootstrap=lambda: None)
                    actor = mesh.spawn("waking", Waking)
                    assert await actor.wake.call_one(["a"]) == ["a"]
                    await mesh.stop()

                async def test_joining(self):
                    mesh = this_host().spawn_procs(per_host={"gpus": 3})
                    actors = mesh.spawn("joining", Joining, "nccl")
                    await actors.join.call()
                    await actors.work.call("cuda")

            async def test_on_the_host():
                mesh = this_host().spawn_procs(per_host={"gpus": 4})
                async with mesh:
                    actors = mesh.spawn("joining", Joining, backend="gloo")
                    actors.join.broadcast()
                    actors.work.call("cpu").get()

            def test_one():
                actor = this_proc().spawn("waking", Waking)
                actor.wake.choose([]).get()

            def test_nothing_is_asked():
                this_host().spawn_procs({"gpus": 2}).spawn("joining", Joining, "nccl")
            """
        },
    )
    assert {name.rpartition("::")[2]: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_waking": (0, 1, 1),
        "test_joining": (3, 3, 3),
        "test_on_the_host": (0, None, 0),
        "test_one": (0, 1, 1),
        "test_nothing_is_asked": (0, None, 0),
    }
    assert found["test_on_the_host"].ranks["8"] == 4


def test_pycuda_works_on_the_device_whose_context_is_current():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/managers.py": """
            import numpy as np
            import pycuda.driver as driver
            import torch

            class Manager:
                def __init__(self):
                    self._host = {}

                def push(self, data, torch_accessible=False):
                    for key, content in data.items():
                        self._host[key] = np.array(content)
                        self._to_device(key, torch_accessible)

            class Pycuda(Manager):
                def _to_device(self, name, torch_accessible):
                    if torch_accessible:
                        torch.from_numpy(self._host[name]).cuda()
                    else:
                        driver.memcpy_htod(driver.mem_alloc(self._host[name].nbytes), self._host[name])
            """,
            "tests/test_it.py": """
            import numpy as np
            import pycuda.driver as drv
            import pycuda.gpuarray as gpuarray
            from acme.managers import Pycuda
            from pycuda.compiler import SourceModule

            def test_library():
                Pycuda().push({"a": [1]})

            def test_array():
                gpuarray.to_gpu(np.ones(3))

            def test_source():
                SourceModule("...").get_function("f")

            def test_second():
                drv.Device(1).make_context()

            def test_count():
                assert drv.Device.count() >= 0
            """,
        },
    )
    assert found == {
        "test_library": (1, 1, 1),
        "test_array": (1, 1, 1),
        "test_source": (1, 1, 1),
        "test_second": (2, 2, 2),
        "test_count": (0, None, 0),
    }
