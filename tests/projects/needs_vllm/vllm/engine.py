import os

from vllm.elsewhere import V1LLMEngine, is_set


class LLMEngine:
    @classmethod
    def from_engine_args(cls, engine_args):
        return cls()


if is_set(os.environ):
    LLMEngine = V1LLMEngine
