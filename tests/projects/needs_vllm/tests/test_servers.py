import subprocess
import sys

import pytest
from vllm.engine import LLMEngine
from vllm.entrypoints.openai.api_server import build_async_engine_client_from_engine_args
from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs
from vllm.worker.model_runner import ModelRunner

from .utils import RemoteOpenAIServer


def check_server(model, tp=1):
    with RemoteOpenAIServer(model, ["--dtype", "float32", "-tp", f"{tp}"]) as server:
        assert server.url


@pytest.fixture(scope="module")
def server():
    with RemoteOpenAIServer("m", ["--max-model-len", "2048"]) as server:
        yield server


def test_server():
    check_server("m")


def test_server_on_two():
    check_server("m", tp=2)


def test_server_of_a_fixture(server):
    assert server.url


def test_command():
    assert subprocess.run(["vllm", "serve", "m", "--tensor-parallel-size=4"], check=True)


def test_module():
    subprocess.Popen([sys.executable, "-m", "vllm.entrypoints.openai.run_batch", "-i", "f", "--model", "m"]).wait()


def test_help_of_a_command():
    assert subprocess.run(["vllm", "serve", "--help"], check=True)


def test_another_command():
    assert subprocess.run(["vllm", "collect-env"], check=True)


def test_engine_that_is_one_of_two():
    engine = LLMEngine.from_engine_args(EngineArgs(model="m", tensor_parallel_size=2))
    assert engine


async def test_engine_client():
    async with build_async_engine_client_from_engine_args(AsyncEngineArgs(model="m")) as engine:
        assert engine


def test_runner():
    assert ModelRunner({}).config == {}
