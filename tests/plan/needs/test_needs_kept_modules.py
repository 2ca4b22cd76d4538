"""What PyTorch keeps of the tests and runs later: parts of models, wrapped models, datasets, hooks, closures."""

import pytest
from small_projects import devices_of

ON_A_DEVICE = (1, 1, 1)
ON_THE_HOST = (0, None, 0)
WRITTEN = """
import operator, torch
from accelerate import Accelerator
from collections import OrderedDict
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, Dataset, IterableDataset

x = torch.ones(3)

class Block(nn.Module):
    def forward(self, x):
        return x + torch.ones(3, device="cuda")

class Plain(nn.Module):
    def forward(self, x):
        return x

class Outer(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.seq = nn.Sequential(nn.Linear(3, 3), inner)
        self.add_module("named", inner)

    def forward(self, x):
        return self.seq(x)

class OfName(Outer):
    def forward(self, x):
        return self.named(x)

class Stack(nn.Sequential):
    pass

class Several(nn.ModuleList):
    def forward(self, x):
        for each in self:
            x = each(x)
        return x

class Items(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return torch.ones(3, device="cuda") * index

class Flow(IterableDataset):
    def __iter__(self):
        for index in range(3):
            yield torch.ones(3).cuda() * index

class Here(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return torch.ones(3) * index

class Broken(Dataset):
    def __getitem__(self, index):
        return {}["missing"]

def up(*given):
    return torch.ones(1).cuda()
"""


def profile_of(body):
    lines = "".join(f"    {each}\n" for each in body.split("\n"))
    return devices_of("test_it.py", {"test_it.py": f"{WRITTEN}\ndef test_it():\n{lines}"})["test_it"]


@pytest.mark.parametrize(
    "body",
    [
        "Block().eval()(x)",
        "Block().train(False)(x)",
        "Block().to(torch.float16)(x)",
        "Block().cpu().half().requires_grad_(False)(x)",
        "model = Block()\nmodel.compile()\nmodel(x)",
        "torch.compile(Block())(x)",
        "torch.jit.script(Block())(x)",
        "torch.nn.DataParallel(Block())(x)",
        "AveragedModel(Block()).eval()(x)",
        "AveragedModel(Block()).module(x)",
    ],
)
def test_a_module_that_is_set_up_or_wrapped_is_still_the_tests_own(body):
    assert profile_of(body)[0:2] == ON_A_DEVICE[0:2]


@pytest.mark.parametrize(
    "body",
    [
        "nn.Sequential(nn.Linear(3, 3), Block())(x)",
        "nn.Sequential(OrderedDict([('one', Block())]))(x)",
        "nn.Sequential(Plain(), nn.Sequential(Block())).eval()(x)",
        "nn.Sequential(Plain(), Block())[1](x)",
        "nn.Sequential(Plain(), Block())[1:](x)",
        "for each in nn.Sequential(Plain(), Block()): each(x)",
        "model = nn.Sequential()\nmodel.append(Block())\nmodel(x)",
        "model = nn.Sequential()\nmodel.add_module('one', Block())\nmodel(x)",
        "for each in nn.ModuleList([Plain(), Block()]): each(x)",
        "parts = nn.ModuleList()\nparts.append(Block())\nparts[0](x)",
        "parts = nn.ModuleList([Plain()])\nparts.extend([Plain(), Block()])\nparts[-1](x)",
        "nn.ModuleDict({'one': Block()})['one'](x)",
        "for name, each in nn.ModuleDict({'one': Block()}).items(): each(x)",
        "for each in nn.ModuleDict({'one': Block()}).values(): each(x)",
        "Outer(Block())(x)",
        "OfName(Block())(x)",
        "Stack(Plain(), Block())(x)",
        "Stack(Plain(), Block()).eval()(x)",
        "Several([Plain(), Block()])(x)",
        "Outer(Block()).get_submodule('named')(x)",
        "for each in Outer(Block()).children(): each(x)",
        "for each in Outer(Block()).modules(): each(x)",
        "for name, each in Stack(Plain(), Block()).named_children(): each(x)",
        "for each in nn.Sequential(Plain(), Block()).children(): each(x)",
        "for name, each in nn.ModuleDict({'one': Block()}).named_children(): each(x)",
        "torch.utils.checkpoint.checkpoint_sequential(nn.Sequential(Plain(), Block()), 2, x)",
    ],
)
def test_a_part_of_a_model_is_run_with_it(body):
    assert profile_of(body) == ON_A_DEVICE


def test_how_many_parts_a_model_has_is_known():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest, torch
            from torch import nn

            @pytest.mark.parametrize("which", ["children", "named_children"])
            def test_split(which):
                model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
                for place, _ in enumerate(getattr(model, which)()):
                    torch.ones(3, device=f"cuda:{place}")
            """,
        },
    )
    assert found == dict.fromkeys(["test_split[children]", "test_split[named_children]"], (3, 3, 3))


@pytest.mark.parametrize(
    "body",
    [
        "for batch in DataLoader(Items(), batch_size=2): pass",
        "next(iter(DataLoader(Items())))",
        "list(DataLoader(Flow()))",
        "for index, batch in enumerate(DataLoader(dataset=Items())): pass",
        "for batch in DataLoader([1, 2], collate_fn=up): pass",
        "[batch for batch in DataLoader(Items())]",
    ],
)
def test_who_goes_over_a_loader_reads_its_dataset(body):
    assert profile_of(body) == ON_A_DEVICE


@pytest.mark.parametrize(
    "body",
    [
        "nn.Linear(3, 3).register_forward_hook(up)",
        "Plain().register_forward_pre_hook(lambda module, args: up())",
        "x.register_hook(up)",
        "nn.Linear(3, 3).register_full_backward_hook(up)",
        "torch.optim.LBFGS([x]).step(up)",
        "torch.futures.Future().then(up)",
        "with torch.autograd.graph.saved_tensors_hooks(up, up): pass",
        "torch.cond(x.sum() > 0, up, up, (x,))",
        "operator.methodcaller('cuda')(x)",
        "list(map(operator.methodcaller('to', 'cuda'), [x]))",
        "nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Block())",
    ],
)
def test_a_hook_or_closure_is_called_by_whom_it_is_given_to(body):
    assert profile_of(body) == ON_A_DEVICE


@pytest.mark.parametrize(
    "body",
    [
        "nn.Sequential(Plain(), Block())",
        "nn.Sequential(Plain(), Block())[0](x)",
        "nn.Sequential(Plain(), nn.Linear(3, 3))(x)",
        "AveragedModel(Plain())(x)",
        "Plain().eval()(x)",
        "DataLoader(Items())",
        "for batch in DataLoader(Here()): pass",
        "len(DataLoader(Items()))",
        "Outer(Plain())(x)",
        "model = Outer(Plain())\nmodel.itself = model\nfor each in model.modules(): each.training",
        "for batch in DataLoader(Broken()): pass",
        "model, optimizer = Accelerator(cpu=True).prepare(Plain(), torch.optim.SGD([x]))\nmodel(x)",
        "Block().eval()",
        "Stack(Plain(), Block())[0](x)",
    ],
)
def test_what_is_only_kept_or_works_on_the_host_uses_no_device(body):
    assert profile_of(body) == ON_THE_HOST


def test_a_layer_of_keras_that_is_called_runs_its_call():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import numpy as np, tensorflow as tf

            class Shifted(tf.keras.layers.Layer):
                def call(self, x):
                    return x + tf.ones(1)

            class Stack(tf.keras.Sequential):
                def __init__(self):
                    super().__init__([Same(), Shifted()])

            class Same(tf.keras.layers.Layer):
                def call(self, x):
                    return x

            def test_shifted(): Shifted()(np.ones(1))
            def test_same(): Same()(np.ones(1))
            def test_stack(): Stack()(np.ones(1))
            """
        },
    )
    assert found == {"test_shifted": (0, 1, 1), "test_same": ON_THE_HOST, "test_stack": (0, 1, 1)}


KERNELS = """
import cupy, torch, triton
import triton.language as tl

raw = cupy.RawKernel("code", "name")

@triton.jit
def plain(x, n: tl.constexpr):
    pass

@triton.autotune(configs=[], key=["n"])
@triton.jit
def tuned(x, n):
    pass

def launched(kernel):
    kernel[(1,)](torch.ones(3), 3)
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("launched(plain)", ON_A_DEVICE),
        ("launched(tuned)", ON_A_DEVICE),
        ("plain[lambda meta: (triton.cdiv(3, 2),)](torch.ones(3), 3)", ON_A_DEVICE),
        ("triton.testing.do_bench(print)", ON_A_DEVICE),
        ("raw((1,), (1,), ())", ON_A_DEVICE),
        ("assert plain.fn and raw.name", ON_THE_HOST),
        ("monkeypatch.setenv('TRITON_INTERPRET', '1'); launched(plain)", ON_THE_HOST),
    ],
)
def test_a_kernel_is_launched_on_a_device_unless_it_is_interpreted(body, expected):
    text = f"{KERNELS}\ndef test_it(monkeypatch):\n    {body}\n"
    assert devices_of("test_it.py", {"test_it.py": text}) == {"test_it": expected}
