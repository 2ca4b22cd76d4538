"""Functions of CuPy, Numba, accelerate and Inductor that want no device, and such that do: by what they are given."""

import pytest
from small_projects import devices_of

ON_A_DEVICE = (1, 1, 1)
ON_THE_HOST = (0, None, 0)
WRITTEN = """
import cupy, cupyx, cupyx.scipy.sparse, numpy as np
from numba import cuda

x = np.ones(3)

def test_it():
    {}
"""


@pytest.mark.parametrize(
    "call",
    [
        "cupy.asnumpy(x)",
        "cupy.sum(x)",
        "cupy.clip(x, 0, 1)",
        "cupy.testing.assert_allclose(x, x)",
        "cupy.testing.assert_array_equal([1, 2], np.arange(2))",
        "cupy.iterable(x)",
        "cupy.cuda.get_cuda_path()",
        "cupyx.scipy.sparse.issparse(x)",
        "cuda.jit('void()', device=True)",
    ],
)
def test_what_is_done_for_numpy_s_arrays_is_done_on_the_host(call):
    assert devices_of("test_it.py", {"test_it.py": WRITTEN.format(call)}) == {"test_it": ON_THE_HOST}


@pytest.mark.parametrize(
    "call",
    [
        "cupy.sum(cupy.ones(3))",
        "cupy.asnumpy(unknown())",
        "cupy.sin(x)",
        "cupy.testing.assert_allclose(x, cupy.ones(3))",
        "cuda.default_stream()",
        "cuda.pinned_array_like(x)",
        "cuda.profile_start()",
    ],
)
def test_what_is_done_for_anything_else_is_done_on_a_device(call):
    assert devices_of("test_it.py", {"test_it.py": WRITTEN.format(call)}) == {"test_it": ON_A_DEVICE}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("infer_auto_device_map(model)", (0, 1, 8)),
        ("infer_auto_device_map(model, max_memory={0: 100, 'cpu': 100})", ON_THE_HOST),
        ("get_max_memory()", (0, 1, 8)),
        ("get_max_memory({0: 100})", ON_THE_HOST),
    ],
)
def test_accelerate_asks_each_device_for_its_memory_unless_it_is_told(call, expected):
    text = f"""
from accelerate import infer_auto_device_map
from accelerate.utils import get_max_memory

def test_it():
    model = object()
    {call}
"""
    library = """
def get_max_memory(max_memory=None):
    return dict(unheard()) if max_memory is None else max_memory

def infer_auto_device_map(model, max_memory=None):
    return unheard(model, get_max_memory(max_memory))
"""
    own = {"accelerate/__init__.py": "from .utils import infer_auto_device_map", "accelerate/utils.py": library}
    assert devices_of("test_it.py", {"test_it.py": text}) == {"test_it": expected}
    assert devices_of("test_it.py", {"test_it.py": text, **own}) == {"test_it": expected}


def test_what_both_pythons_have_by_different_names_is_known():
    found = devices_of(
        "test_cases.py",
        {
            "test_cases.py": """
            import six
            import torch, unittest
            from six.moves import range, zip

            def cases(**given):
                for names in given:
                    assert isinstance(names, six.string_types)
                return [{key: value} for key, values in six.iteritems(given) for value in values]

            def needing(case):
                return unittest.skipIf(torch.cuda.device_count() < case["n"], "too few")

            class TestIt(unittest.TestCase):
                @needing(cases(n=[2])[0])
                def test_it(self):
                    for number, index in zip(range(2), six.moves.xrange(2)):
                        torch.ones(1, device=f"cuda:{index}")

                def test_kinds(self):
                    devices = 4 if six.PY2 or isinstance("2", six.integer_types) else 1
                    torch.ones(1, device=f"cuda:{devices - 1}")
            """
        },
    )
    assert found == {"TestIt::test_it": (2, 2, 2), "TestIt::test_kinds": (1, 1, 1)}


def test_a_name_for_several_types_outside_of_the_tree_may_have_any_of_them():
    found = devices_of(
        "test_texts.py",
        {
            "test_texts.py": """
            import torch
            from elsewhere import string_types
            from elsewhere.compat import text_classes

            def names_of(given):
                assert isinstance(given, string_types)
                if not isinstance(given, text_classes):
                    raise TypeError(given)
                return given.split(",")

            NAMES = names_of("a,b")

            def test_it():
                for index, name in enumerate(NAMES):
                    torch.ones(1, device=f"cuda:{index}")
            """
        },
    )
    assert found == {"test_it": (2, 2, 2)}


def test_what_inductor_compiles_only_says_which_device_it_is_for():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from torch._inductor import ir
            from torch._inductor.ir import Buffer, FixedLayout, Pointwise
            from torch.testing._internal.inductor_utils import GPU_TYPE

            def test_buffer():
                layout = FixedLayout(torch.device(GPU_TYPE), dtype=torch.float32, size=(4,))
                assert Buffer(name="buf", layout=layout).get_name() == "buf"

            def test_loops():
                made = Pointwise.create(device=torch.device("cuda:1"), dtype=torch.int32, inner_fn=abs, ranges=[4])
                assert len(made.get_reads()) == 1
                ir.Pointwise.create(device=torch.device(GPU_TYPE), dtype=torch.int32, inner_fn=abs, ranges=[4])

            def test_compiled():
                torch.compile(abs)(torch.ones(1, device=GPU_TYPE))
            """
        },
    )
    assert found == {"test_buffer": (0, None, 0), "test_loops": (0, None, 0), "test_compiled": (1, 1, 1)}
