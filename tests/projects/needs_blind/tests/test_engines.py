import lm_eval
from engine.arguments import AsyncLLM, EngineArgs

SIZE = 2


def test_engine_of_arguments():
    AsyncLLM.from_engine_args(EngineArgs(model="m", tensor_parallel_size=SIZE, data_parallel_size=2))


def test_engine_of_arguments_without_sizes():
    AsyncLLM.from_engine_args(EngineArgs(model="m"))


def test_evaluates_with_a_table():
    lm_eval.simple_evaluate(model="vllm", model_args={"pretrained": "m", "tensor_parallel_size": 2}, tasks="t")


def test_evaluates_with_a_text():
    lm_eval.simple_evaluate(model="vllm", model_args="pretrained=m,tensor_parallel_size=2", tasks="t")
