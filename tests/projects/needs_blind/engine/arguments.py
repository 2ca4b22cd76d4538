from dataclasses import dataclass


def default_size():
    from elsewhere import configured

    return configured("size")


@dataclass
class EngineArgs:
    model: str = ""
    tensor_parallel_size: int = default_size()
    data_parallel_size: int = default_size()


class AsyncLLM:
    @classmethod
    def from_engine_args(cls, engine_args):
        return cls()
