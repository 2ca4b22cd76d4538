"""What CuPy's own tests have: results that are compared, classes that are made of cases, words for the host."""

from small_projects import devices_of, needs_of


def test_results_that_are_compared_under_scipys_name_are_computed_on_a_device_too():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from cupy import testing

            @testing.numpy_cupy_allclose(scipy_name="scp", accept_error=ValueError)
            def test_spline(xp, scp):
                scp.interpolate.make_interp_spline([0, 2, 1], [0, 1, 2], k=1)
            """
        },
    )
    assert found == {"test_spline": (1, 1, 1)}


def test_classes_that_cupy_makes_of_cases_have_its_names_and_their_own_needs():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import cupy
            import numpy
            from cupy import testing

            @testing.parameterize({"count": 2, "dtype": numpy.float32}, {"count": 3, "dtype": numpy.float64})
            class TestOld(unittest.TestCase):
                def test_it(self):
                    for index in range(self.count):
                        cupy.cuda.Device(index).use()

            @testing.parameterize(*testing.product({"n": [1, 4], "host": [False]}))
            class TestNew:
                def test_it(self):
                    cupy.cuda.Device(self.n - 1).use()

            @testing.parameterize({"types": (numpy.int8, numpy.bool_, None), "at": (..., [1]), "one": numpy.bool_})
            class TestTypes:
                def test_it(self):
                    cupy.ones(1)
            """
        },
    )
    types = "(<class 'numpy.int8'>, <class 'numpy.bool'>, None)"
    assert found == {
        "TestOld_param_0_{count=2, dtype=float32}::test_it": (2, 2, 2),
        "TestOld_param_1_{count=3, dtype=float64}::test_it": (3, 3, 3),
        "TestNew::test_it[_param_0_{host=False, n=1}]": (1, 1, 1),
        "TestNew::test_it[_param_1_{host=False, n=4}]": (4, 4, 4),
        f"TestTypes::test_it[_param_0_{{at=(Ellipsis, [1]), one=bool, types={types}}}]": (1, 1, 1),
    }


def test_an_error_of_cupys_and_a_version_need_no_device():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import cupy
            from cupy.cuda import cufft, runtime

            new = pytest.mark.skipif(runtime.runtimeGetVersion() < 10010, reason="old")

            @new
            def test_error():
                assert cufft.CuFFTError(1).args

            def test_array():
                cupy.zeros(1)
            """
        },
    )
    assert found == {"test_error": (0, None, 0), "test_array": (1, 1, 1)}


def test_a_test_that_cupy_repeats_is_run_all_the_same():
    test = """
        import unittest
        import cupy
        from cupy.testing import _condition

        class TestIt(unittest.TestCase):
            def check(self):
                return cupy.asarray([1, 2])

            @_condition.repeat(3, 10)
            def test_it(self):
                self.check()
        """
    helper = """
        import functools
        import unittest

        def repeat(times, intensive_times=None):
            def decorator(f):
                @functools.wraps(f)
                def wrapper(*args, **kwargs):
                    suite = unittest.TestSuite()
                    suite.addTest(unittest.FunctionTestCase(lambda: f(*args, **kwargs)))
                    unittest.TestResult()
                return wrapper
            return decorator
        """
    wanted = {"TestIt::test_it": (1, 1, 1)}
    assert devices_of("test_it.py", {"test_it.py": test}) == wanted
    assert (
        devices_of(
            "tests/test_it.py",
            {
                "tests/test_it.py": test,
                "cupy/__init__.py": "",
                "cupy/testing/__init__.py": "from cupy.testing import _condition",
                "cupy/testing/_condition.py": helper,
            },
        )
        == wanted
    )


def test_a_decorator_that_asks_whether_it_was_given_a_function_loses_no_class():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import functools
            import types
            import unittest
            import cupy

            def fixed(impl):
                if isinstance(impl, types.FunctionType) and impl.__name__.startswith("test_"):
                    @functools.wraps(impl)
                    def inner(self, *args, **kw):
                        impl(self, *args, **kw)
                    return inner
                elif isinstance(impl, type):
                    return impl
                raise ValueError("not this one")

            class TestIt(unittest.TestCase):
                @fixed
                def test_fixed(self):
                    cupy.ones(1)

            @fixed
            class TestAll(unittest.TestCase):
                def test_all(self):
                    cupy.ones(1)
            """
        },
    )
    assert found == {"TestIt::test_fixed": (1, 1, 1), "TestAll::test_all": (1, 1, 1)}


def test_cases_reach_a_test_behind_the_decorators_that_compare_numpy_and_cupy():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy
            import pytest
            from cupy import testing

            class TestIt:
                @pytest.mark.parametrize("name", ["array", "float32"])
                @testing.for_all_dtypes()
                @testing.numpy_cupy_allclose()
                def test_one(self, xp, dtype, name):
                    return getattr(xp, name)(1)

                @testing.numpy_cupy_allclose()
                @pytest.mark.parametrize("number", [0, 2])
                def test_other(self, xp, number):
                    with cupy.cuda.Device(number):
                        return xp.array([1])
            """
        },
    )
    assert found == {
        "TestIt::test_one[array]": (1, 1, 1),
        "TestIt::test_one[float32]": (0, None, 0),
        "TestIt::test_other[0]": (1, 1, 1),
        "TestIt::test_other[2]": (3, 3, 3),
    }


def test_an_item_of_a_grid_is_an_array_that_is_made():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy
            import jax.numpy as jnp
            import numpy
            from cupy import testing

            @testing.numpy_cupy_array_equal()
            def test_grid(xp):
                return xp.mgrid[0:4]

            def test_row():
                return cupy.r_[1, 2]

            def test_jax():
                return jnp.mgrid[0:4]

            def test_none():
                return numpy.mgrid[0:4], cupy.s_[0:4], jnp.s_[0:4]
            """
        },
    )
    assert found == {
        "test_grid": (1, 1, 1),
        "test_row": (1, 1, 1),
        "test_jax": (0, 1, 1),
        "test_none": (0, None, 0),
    }


def test_a_pointer_into_memory_of_no_device_touches_none():
    found = devices_of(
        "test_pointer.py",
        {
            "test_pointer.py": """
            from cupy.cuda import memory

            class Pretended(memory.Memory):
                def __init__(self, size):
                    self.ptr = 1 << 8
                    self.size = size

            def test_pretended():
                assert int(memory.MemoryPointer(Pretended(10), 0)) == 256

            def test_allocated():
                memory.MemoryPointer(memory.Memory(10), 0)
            """
        },
    )
    assert found == {"test_pretended": (0, None, 0), "test_allocated": (1, 1, 1)}


def test_cupy_counts_no_devices_with_an_error_that_may_be_caught():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/counting.py": """
            import cupy

            try:
                cupy.cuda.runtime.getDeviceCount()
                has_device = True
            except cupy.cuda.runtime.CUDARuntimeError:
                has_device = False
            """,
            "tests/test_it.py": """
            import cupy
            from counting import has_device

            def test_caught():
                if has_device:
                    cupy.zeros(3)

            def test_counted():
                assert cupy.cuda.runtime.getDeviceCount() >= 0
            """,
        },
    )
    said = {name: ("".join(at.value[0] for at in each.profile.values()), each.full) for name, each in found.items()}
    assert said == {"test_caught": ("rrrrrr", 1), "test_counted": ("frrrrr", 1)}


def test_arrays_that_the_library_makes_of_cupy_or_rapids_need_a_device():
    found = devices_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": """
            import cudf
            import cupy
            import numpy

            has_device = cupy.cuda.is_available()

            def made():
                return cupy.zeros(3)

            def read(path):
                return cudf.read_csv(path)

            def seeded():
                numpy.random.seed(0)
                if has_device:
                    cupy.random.seed(0)

            def chosen(like):
                return cupy.zeros(3) if isinstance(like, cupy.ndarray) else numpy.zeros(3)
            """,
            "tests/test_it.py": """
            import lib

            def test_made():
                lib.made()

            def test_read():
                lib.read("a.csv")

            def test_seeded():
                lib.seeded()

            def test_chosen():
                lib.chosen([1])
            """,
        },
    )
    needing = dict.fromkeys(("test_made", "test_read"), (1, 1, 1))
    assert found == needing | {"test_seeded": (0, 1, 1), "test_chosen": (0, None, 0)}


def test_what_the_library_makes_on_all_ways_is_made_and_on_some_ways_perhaps():
    found = needs_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": """
            import cupy
            import numpy

            from pandas import is_sparse, read

            class Graph:
                def __new__(cls, data):
                    if is_sparse(data):
                        made = cupy.asarray(data.rows)
                    elif data.shape == 2:
                        made = _dense(data)
                    else:
                        raise NotImplementedError
                    return made

            def _dense(data):
                return cupy.asarray(data)

            def converted(data):
                if is_sparse(data):
                    return numpy.asarray(data)
                if read(data):
                    return _dense(data)
                return data

            def plain(data):
                if is_sparse(data):
                    return numpy.asarray(data)
                return data
            """,
            "tests/test_it.py": """
            from lib import Graph, converted, plain
            from pandas import read

            def test_all_ways():
                Graph(read("a"))

            def test_some_ways():
                converted(read("a"))

            def test_no_way():
                plain(read("a"))
            """,
        },
    )
    assert {name: (each.min, each.full, each.confidence) for name, each in found.items()} == {
        "test_all_ways": (1, 1, "high"),
        "test_some_ways": (0, 0, "medium"),
        "test_no_way": (0, 0, "high"),
    }


def test_lists_that_the_library_has_written_down_are_cases():
    found = devices_of(
        "tests/test_it.py",
        {
            "cupyx/scipy/interpolate/_kernels.py": """
            import cupy

            _KERNELS = {"linear", "cubic"}
            _ORDERS = {"linear": 1, "cubic": 3}
            _MADE = list(cupy.kernels())
            """,
            "tests/test_it.py": """
            import cupy, pytest
            from cupyx.scipy.interpolate._kernels import _KERNELS, _MADE, _ORDERS

            @pytest.mark.parametrize("kernel", sorted(_KERNELS))
            def test_kernels(kernel):
                assert _ORDERS[kernel]
                cupy.arange(3)

            @pytest.mark.parametrize("kernel", _MADE)
            def test_made(kernel):
                cupy.arange(3)
            """,
        },
    )
    assert found == dict.fromkeys(("test_kernels[cubic]", "test_kernels[linear]", "test_made"), (1, 1, 1))


def test_communicators_and_peers_need_the_devices_that_they_are_told():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import cupy
            from cupy.cuda import nccl

            def test_of_a_list():
                nccl.NcclCommunicator.initAll([0, 1, 2])

            def test_of_a_number():
                nccl.NcclCommunicator.initAll(2)

            def test_of_all():
                nccl.NcclCommunicator.initAll(cupy.cuda.runtime.getDeviceCount())

            def test_peers():
                if cupy.cuda.runtime.deviceCanAccessPeer(0, 3):
                    cupy.cuda.runtime.deviceEnablePeerAccess(3)
            """
        },
    )
    assert found == {
        "test_of_a_list": (3, 3, 3),
        "test_of_a_number": (2, 2, 2),
        "test_of_all": (1, 1, 8),
        "test_peers": (4, 4, 4),
    }


def test_a_mistake_that_is_expected_may_be_found_before_a_device_is_missed():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import cupy
            import pytest
            from cupy import array_api as xp

            def test_mistaken():
                with pytest.raises(TypeError):
                    xp.result_type(42)

            class ItTest(unittest.TestCase):
                def test_called(self):
                    self.assertRaises(ValueError, xp.result_type, 42)

            def test_made_before():
                x = cupy.zeros(3)
                with pytest.raises(ValueError):
                    x.reshape(4)
            """
        },
    )
    assert {name: (each.min, each.confidence.value) for name, each in found.items()} == {
        "test_mistaken": (1, "medium"),
        "ItTest::test_called": (1, "medium"),
        "test_made_before": (1, "high"),
    }


def test_cupys_bases_of_tests_bring_their_tests_where_cupy_is_not_in_the_tree():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from cupy import testing

            class TestNames(testing.NumpyAliasBasicTestBase):
                func = "binary_repr"

            @testing.parameterize({"args": (1,)}, {"args": (1, 2)})
            class TestValues(testing.NumpyAliasValuesTestBase):
                func = "binary_repr"
            """
        },
    )
    assert found == dict.fromkeys(
        (
            "TestNames::test_argspec",
            "TestNames::test_docstring",
            "TestValues_param_0_{args=(1,)}::test_values",
            "TestValues_param_1_{args=(1, 2)}::test_values",
        ),
        (0, None, 0),
    )


def test_a_decorator_of_a_suite_that_is_built_on_cupys_own_is_followed():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy
            import pytest
            from cupy import testing
            from cupy.testing._loops import _wraps_partial_xp

            def both(test):
                @_wraps_partial_xp(test, "xp")
                def inner(self, **kwargs):
                    test(self, cupy, **kwargs)
                return inner

            class TestIt:
                @pytest.mark.parametrize("n", [1, 2])
                @both
                def test_it(self, xp, n):
                    xp.zeros(n)
            """
        },
    )
    assert found == dict.fromkeys(("TestIt::test_it[1]", "TestIt::test_it[2]"), (1, 1, 1))


def test_cases_of_cupys_are_named_by_their_numbers_where_they_say_so():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy
            import numpy
            from cupy import testing

            @testing.parameterize({"at": numpy.random.rand(3)}, {"at": numpy.random.rand(4)}, _ids=False)
            class TestNumbered:
                def test_it(self):
                    cupy.zeros(3)

            @testing.parameterize({"at": [{"a": numpy.int8}, 1]})
            class TestNamed:
                def test_it(self):
                    cupy.zeros(3)
            """
        },
    )
    names = ("TestNumbered::test_it[0]", "TestNumbered::test_it[1]")
    named = "TestNamed::test_it[_param_0_{at=[{'a': <class 'numpy.int8'>}, 1]}]"
    assert found == dict.fromkeys((*names, named), (1, 1, 1))


def test_cupys_assertions_about_numpys_arrays_need_no_device():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import cupy
            import numpy
            from cupy import testing

            @testing.parameterize({"xp": numpy}, {"xp": cupy})
            class TestIt(unittest.TestCase):
                def setUp(self):
                    self.x = self.xp.array(numpy.random.uniform(-1, 1, (2, 3)))

                def test_equal(self):
                    testing.assert_array_equal(self.x, self.x)

                def test_made(self):
                    made = testing.shaped_linspace(-3, 3, (2, 3), self.xp, "f")
                    testing.assert_allclose(made, numpy.linspace(0, 3, 6))
            """
        },
    )
    first, second = "TestIt_param_0_{xp=numpy}::", "TestIt_param_1_{xp=cupy}::"
    assert found == {
        f"{first}test_equal": (0, None, 0),
        f"{first}test_made": (0, None, 0),
        f"{second}test_equal": (1, 1, 1),
        f"{second}test_made": (1, 1, 1),
    }


def test_functions_of_cupys_that_a_test_replaces_make_no_array():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy
            from cupy import testing

            def test_called():
                with testing.AssertFunctionIsCalled("cupy.ndarray", times_called=2):
                    cupy.ndarray((2, 3))
                    cupy.ndarray((2, 3))

            def test_nothing():
                cupy.ndarray((2, 3))
            """
        },
    )
    assert found == {"test_called": (0, None, 0), "test_nothing": (1, 1, 1)}


def test_what_cupy_keeps_on_the_disk_and_says_of_types_is_of_the_host():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy
            from cupy import cuda
            from cupy._core._scalar import get_typename
            from cupy._indexing import generate
            from cupy.cuda._compiler_cache import DiskKernelCacheBackend

            def test_cache(tmp_path):
                backend = DiskKernelCacheBackend(cache_dir=str(tmp_path))
                backend.save("a", b"b", "c")
                assert backend.load("a") == b"b"

            def test_type():
                assert cupy.make_aligned_dtype("?,c8").itemsize == 16

            def test_null():
                assert cuda.Stream.null.__cuda_stream__()[0] == 0

            def test_empty():
                assert len(generate.AxisConcatenator()) == 0

            def test_named():
                assert get_typename(cupy.float32) == "float"
            """
        },
    )
    names = ("test_cache", "test_type", "test_null", "test_empty", "test_named")
    assert found == dict.fromkeys(names, (0, None, 0))


def test_modes_of_cupys_distributed_arrays_name_cases_as_the_values_that_they_are():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            from cupy import testing
            from cupyx.distributed import array
            from cupyx.distributed.array._modes import REPLICA, SUM

            @testing.multi_gpu(2)
            class TestIt:
                @pytest.mark.parametrize("mode", [REPLICA, SUM])
                def test_it(self, mode):
                    array.distributed_array([1, 2], {0: [0], 1: [1]}, mode)
            """
        },
    )
    assert found == dict.fromkeys(("TestIt::test_it[None]", "TestIt::test_it[mode1]"), (2, 2, 2))


def test_what_asks_for_several_devices_is_known_where_cupy_had_it_before_too():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy
            from cupy import testing

            @testing.multi_gpu(2)
            class TestIt:
                def test_it(self):
                    cupy.zeros(3)
            """,
            "cupy/__init__.py": "",
            "cupy/testing/__init__.py": "from cupy.testing import attr\nmulti_gpu = attr.multi_gpu\n",
            "cupy/testing/attr.py": """
            import os
            import unittest

            _gpu_limit = int(os.getenv("CUPY_TEST_GPU_LIMIT", "-1"))

            def multi_gpu(gpu_num):
                return unittest.skipIf(0 <= _gpu_limit < gpu_num, reason="GPUs required")
            """,
        },
    )
    assert found == {"TestIt::test_it": (2, 2, 2)}


def test_cuda_is_new_enough_for_what_a_file_asks_of_it_while_it_is_imported():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import cupy

            def can_synchronize():
                return (
                    cupy.cuda.runtime.runtimeGetVersion() >= 9000
                    and int(cupy.cuda.device.get_compute_capability()) >= 70
                )

            class TestIt(unittest.TestCase):
                @unittest.skipUnless(can_synchronize(), "too old")
                def test_grid(self):
                    cupy.zeros(1)

                def test_plain(self):
                    pass
            """,
        },
    )
    assert found == {"TestIt::test_grid": (1, 1, 1), "TestIt::test_plain": (1, 1, 1)}


def test_cupys_core_counts_and_compares_without_a_device_under_its_older_name_too():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy
            from cupy.core import flags, internal
            from cupy._core import internal as newer

            def test_older():
                assert internal.get_c_contiguity((3, 4, 3), (24, 6, 2), 2)
                assert flags.Flags(1, 2, 3)["OWNDATA"]

            def test_newer():
                assert newer.get_c_contiguity((3, 4, 3), (24, 6, 2), 2)

            def test_array():
                cupy.core.array([1])
            """,
        },
    )
    assert found == {"test_older": (0, None, 0), "test_newer": (0, None, 0), "test_array": (1, 1, 1)}


def test_a_device_that_is_set_must_be_there():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy

            def test_set():
                cupy.cuda.runtime.setDevice(3)
            """,
        },
    )
    assert found == {"test_set": (4, 4, 4)}
