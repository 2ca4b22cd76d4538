"""Work that JAX maps over devices: along which axes, of what size, and what is refused before it runs."""

from small_projects import devices_of, needs_of


def profile(needs):
    return "".join(each.value[0] for each in needs.profile.values())


def answers(found):
    return {name: (each.min, each.gpu_min, each.full, each.confidence.value) for name, each in found.items()}


def test_work_of_jaxs_is_mapped_over_the_axes_that_it_is_told_in_as_many_parts_as_it_is_told():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import numpy as np
            from jax import pmap

            def test_other_axes_all():
                n = jax.device_count()
                pmap(lambda x, y: x + y, in_axes=(1, 2))(np.ones((2, n, 4)), np.ones((2, 4, n)))

            def test_one_is_not_mapped():
                pmap(lambda x, y: x + y, in_axes=(0, None))(np.ones((1, 4)), np.ones((2, 4)))

            def test_two_places_along_the_last():
                pmap(lambda x, y: x + y, in_axes=(None, -1))(np.ones((5, 4)), np.ones((7, 2)))

            def test_in_a_tree():
                pmap(lambda x: x, in_axes=({"a": 1, "b": None},))({"a": np.ones((9, 2)), "b": np.ones((8, 8))})

            def test_by_name_the_first_axis():
                pmap(lambda x, y: x + y, in_axes=(None,))(np.ones((5, 4)), y=np.ones((2, 7)))

            def test_so_many_parts():
                pmap(lambda: 3, axis_size=2, in_axes=())()

            def test_as_many_parts_as_devices():
                pmap(lambda x: x, axis_size=jax.device_count(), in_axes=None)(3.0)
            """
        },
    )
    assert answers(found) == {
        "test_other_axes_all": (0, 1, 8, "high"),
        "test_one_is_not_mapped": (0, 1, 1, "high"),
        "test_two_places_along_the_last": (2, 2, 2, "high"),
        "test_in_a_tree": (2, 2, 2, "high"),
        "test_by_name_the_first_axis": (2, 2, 2, "high"),
        "test_so_many_parts": (2, 2, 2, "high"),
        "test_as_many_parts_as_devices": (0, 1, 8, "high"),
    }


def test_mapped_work_whose_mistake_is_expected_is_refused_before_it_runs_on_devices():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            from functools import partial
            import unittest
            import jax
            import jax.numpy as jnp
            import pytest
            from jax import pmap

            class TestIt(unittest.TestCase):
                def test_devices_inside(self):
                    @partial(pmap, axis_name="i")
                    def outer(x):
                        @partial(pmap, axis_name="j", devices=jax.devices())
                        def inner(y):
                            return y

                        return inner(x)

                    with self.assertRaisesRegex(ValueError, "explicit devices"):
                        outer(jnp.ones((jax.device_count(), 1)))
                    self.assertRaises(TypeError, outer, jnp.ones((jax.device_count(), 1)))

                def test_computed_first(self):
                    x = jnp.ones(jax.device_count())
                    with self.assertRaises(ValueError):
                        pmap(lambda x: x.foo())(x)
                    pmap(lambda x: x)(x)

            def test_found_by_the_device():
                with pytest.raises(FloatingPointError):
                    pmap(lambda x: 0.0 / x)(jnp.zeros(jax.device_count()))
            """
        },
    )
    assert answers(found) == {
        "TestIt::test_devices_inside": (0, 1, 1, "medium"),
        "TestIt::test_computed_first": (0, 1, 8, "medium"),
        "test_found_by_the_device": (0, 1, 8, "high"),
    }


def test_the_kind_of_device_is_asked_and_cases_are_drawn_by_what_jax_has_for_its_tests_in_older_versions():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            from absl.testing import parameterized
            from jax._src import test_util as jtu
            import jax.numpy as jnp

            class TestIt(jtu.JaxTestCase):
                def test_of_the_host(self):
                    if jtu.device_under_test() == "gpu":
                        self.skipTest("not useful for GPU")
                    jnp.ones(3)

                @parameterized.named_parameters(jtu.cases_from_list(
                    dict(testcase_name="_ordered" if ordered else "", ordered=ordered) for ordered in [False, True]))
                def test_drawn(self, ordered):
                    jnp.ones(3)

                @parameterized.named_parameters(jtu.cases_from_list(
                    {"testcase_name": f"_{number}", "number": number} for number in range(12)))
                def test_ten_of_twelve(self, number):
                    jnp.ones(3)

                @parameterized.named_parameters(("Wide", 1), ("_low", 2))
                def testShapes(self, number):
                    jnp.ones(3)
            """,
            "jax/__init__.py": "",
            "jax/_src/__init__.py": "",
            "jax/_src/public_test_util.py": """
            def device_under_test():
                return _options.test_dut or xla_bridge.get_backend().platform
            """,
            "jax/_src/test_util.py": """
            import numpy.random as npr
            from absl.testing import parameterized
            from jax._src.public_test_util import device_under_test

            def cases_from_list(xs):
                xs = list(xs)
                indices = npr.RandomState(42).permutation(len(xs))
                return [xs[i] for i in indices[:FLAGS.num_generated_cases]]

            class JaxTestCase(parameterized.TestCase):
                pass
            """,
        },
    )
    assert found == {
        "TestIt::test_of_the_host": (0, None, 0),
        "TestIt::test_drawn": (0, 1, 1),
        "TestIt::testShapesWide": (0, 1, 1),
        "TestIt::testShapes_low": (0, 1, 1),
        "TestIt::test_drawn_ordered": (0, 1, 1),
    } | {f"TestIt::test_ten_of_twelve_{number}": (0, 1, 1) for number in (10, 9, 0, 8, 5, 2, 1, 11, 4, 7)}


def test_what_is_mapped_on_one_device_has_no_axis_for_what_is_mapped_over_devices_inside_of_it():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import numpy as np
            from jax import lax, pmap, vmap

            def over_devices(x):
                return pmap(lambda y: y)(x)

            def test_of_a_function():
                vmap(over_devices)(np.ones((5, jax.device_count(), 3)))

            def test_of_the_mapped_itself():
                vmap(pmap(lambda y: y), in_axes=2, out_axes=2)(np.ones((2, 3, 4)))

            def test_some_are_not_mapped():
                def of_two(x, y):
                    return pmap(lambda z: z, in_axes=(None,))(x, y=y)

                vmap(of_two, in_axes=(0, None))(np.ones((7, 3)), np.ones((2, 9)))

            def test_in_a_tree():
                vmap(lambda x: over_devices(x["b"]), in_axes=({"a": None, "b": 1},))({"a": 3, "b": np.ones((2, 5))})

            def test_what_comes_out_has_the_axis_again():
                pmap(lambda y: y)(vmap(lambda x: x)(np.ones((2, 3))).reshape(2, 3))

            def test_compiled_around():
                jax.jit(vmap(over_devices))(np.ones((5, 2, 3)))
                jax.jit(pmap(lambda y: y))(np.ones((3, 3)))

            def test_one_after_the_other():
                lax.map(over_devices, np.ones((5, 2, 3)))

            @jax.vmap
            def decorated(x):
                return over_devices(x)

            class TestIt:
                @jax.vmap
                def method(self, x):
                    return over_devices(x)

                def test_decorated(self):
                    decorated(np.ones((3, 2)))
            """
        },
    )
    assert answers(found) == {
        "test_of_a_function": (0, 1, 8, "high"),
        "test_of_the_mapped_itself": (2, 2, 2, "high"),
        "test_some_are_not_mapped": (2, 2, 2, "high"),
        "test_in_a_tree": (2, 2, 2, "high"),
        "test_what_comes_out_has_the_axis_again": (2, 2, 2, "high"),
        "test_compiled_around": (3, 3, 3, "high"),
        "test_one_after_the_other": (2, 2, 2, "high"),
        "TestIt::test_decorated": (2, 2, 2, "high"),
    }


def test_what_is_compiled_or_mapped_for_the_host_runs_there_and_soft_maps_spread_their_parts():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            from functools import partial
            import jax
            import numpy as np
            from jax.interpreters import pxla
            from jax.core import ShapedArray

            def test_compiled_for_the_host():
                jax.jit(lambda x: x, backend="cpu")(np.ones(3))

            def test_made_on_the_host():
                @partial(jax.jit, backend="cpu")
                def f(x):
                    return jax.numpy.matmul(x, jax.numpy.ones(3))

                assert [each.platform for each in f(np.ones(3)).devices()] == ["cpu"]

            def test_compiled_on_the_second():
                @partial(jax.jit, device=jax.devices()[1])
                def f(x):
                    return x

                f(np.ones(3))

            def test_mapped_for_the_host():
                jax.pmap(lambda x: x, backend="cpu")(np.ones((1, 3)))

            def test_many_parts_on_all():
                jax.soft_pmap(lambda x: x, "i")(np.ones(4 * jax.device_count()))

            def test_few_parts():
                jax.soft_pmap(lambda x: x, "i")(np.ones(2))

            def test_an_array_that_is_made_of_its_shape():
                array = pxla.ShardedDeviceArray(ShapedArray((3, 4), np.float32), None, [])
                jax.pmap(lambda x: x)(array)
            """
        },
    )
    assert answers(found) == {
        "test_compiled_for_the_host": (0, None, 0, "high"),
        "test_made_on_the_host": (0, None, 0, "high"),
        "test_compiled_on_the_second": (2, 2, 2, "high"),
        "test_mapped_for_the_host": (0, None, 0, "high"),
        "test_many_parts_on_all": (0, 1, 8, "high"),
        "test_few_parts": (0, 1, 2, "high"),
        "test_an_array_that_is_made_of_its_shape": (3, 3, 3, "high"),
    }


def test_jaxs_own_helpers_that_know_no_device_are_read_from_its_tree():
    found = devices_of(
        "tests/test_it.py",
        {
            "jax/__init__.py": "",
            "jax/_src/__init__.py": "",
            "jax/_src/util.py": """
            from functools import partial

            def wraps(wrapped):
                def wrapper(fun):
                    try:
                        fun.__dict__.update(getattr(wrapped, "__dict__", {}))
                    finally:
                        return fun
                return wrapper

            def curry(f):
                return wraps(f)(partial(partial, f))
            """,
            "tests/test_it.py": """
            from absl.testing import parameterized
            from jax._src.util import curry
            import jax

            @curry
            def over_meshes(f, key):
                return parameterized.named_parameters(
                    {"testcase_name": "_" + name, key: size} for name, size in (("2", 2), ("2x2", 4)))(f)

            class TestIt(parameterized.TestCase):
                @over_meshes(key="size")
                def test_sized(self, size):
                    jax.make_mesh((size,), ("x",))
            """,
        },
    )
    assert found == {"TestIt::test_sized_2": (2, 2, 2), "TestIt::test_sized_2x2": (4, 4, 4)}


def test_a_mesh_uses_its_devices_where_something_is_done_with_it_and_not_where_it_is_made():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import jax
            import numpy as np
            from jax.sharding import Mesh, NamedSharding, PartitionSpec

            def mesh_of(count):
                return Mesh(np.array(jax.devices()[:count]), ("x",))

            class TestMeshes(unittest.TestCase):
                def setUp(self):
                    self.mesh = Mesh(np.array(jax.devices()), ("x",))

                def test_says_nothing(self):
                    pass

                def test_puts(self):
                    jax.device_put(np.ones(8), NamedSharding(self.mesh, PartitionSpec("x")))

                def test_enters(self):
                    with self.mesh:
                        jax.jit(lambda x: x)(np.ones(8))

                def test_hands_on(self):
                    mesh = self.mesh
                    jax.set_mesh(mesh)

            def test_made_and_left():
                made = jax.make_mesh((4,), ("x",))

            def test_made_and_entered():
                with jax.make_mesh((4,), ("x",)):
                    pass

            def test_of_a_function():
                jax.shard_map(abs, mesh=mesh_of(2), in_specs=None, out_specs=None)(np.ones(2))

            def test_of_a_function_and_left():
                made = mesh_of(2)
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "TestMeshes::test_says_nothing": (0, 1, 1),
        "TestMeshes::test_puts": (0, 1, 8),
        "TestMeshes::test_enters": (0, 1, 8),
        "TestMeshes::test_hands_on": (0, 1, 8),
        "test_made_and_left": (4, 4, 4),
        "test_made_and_entered": (4, 4, 4),
        "test_of_a_function": (0, 1, 2),
        "test_of_a_function_and_left": (0, 1, 1),
    }


def test_a_mesh_that_is_only_asked_for_its_shape_or_its_names_uses_no_device():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import jax.numpy as jnp
            import numpy as np
            from jax.sharding import Mesh, NamedSharding, PartitionSpec

            def mesh_of_all():
                return Mesh(np.array(jax.devices()).reshape(-1, 1), ("x", "y"))

            def test_asks_for_the_shape():
                mesh = mesh_of_all()
                jnp.ones(8 // mesh.shape["x"])

            def test_asks_for_the_names():
                assert mesh_of_all().axis_names == ("x", "y")

            def test_maps_by_two():
                size = 1 if mesh_of_all().empty else 2
                count = 2 if len(jax.devices()) > 1 else 1
                jax.pmap(lambda key: key)(jax.random.split(jax.random.PRNGKey(0), count))

            def test_asks_and_puts():
                mesh = mesh_of_all()
                size = mesh.shape["x"]
                jax.device_put(np.ones(size), NamedSharding(mesh, PartitionSpec("x")))

            def test_puts_by_its_devices():
                jax.device_put_replicated(np.ones(2), list(mesh_of_all().devices.flat))
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_asks_for_the_shape": (0, 1, 1),
        "test_asks_for_the_names": (0, 1, 1),
        "test_maps_by_two": (0, 1, 2),
        "test_asks_and_puts": (0, 1, 8),
        "test_puts_by_its_devices": (0, 1, 8),
    }


def test_what_a_test_of_jaxs_own_maps_with_the_functions_behind_pmap_is_mapped_as_by_pmap():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import numpy as np
            from jax._src import api as src_api
            from jax._src.interpreters import pxla
            from jax.lib import xla_bridge

            class TestPython:
                @property
                def pmap(self):
                    return src_api._python_pmap

                def test_all(self):
                    self.pmap(lambda x: x, axis_name="i")(np.ones((xla_bridge.device_count(), 4)))

                def test_one_inside_the_other(self):
                    self.pmap(self.pmap(lambda x: x, "i"), "j")(np.ones((2, 2, 4)))

            def test_compiled():
                src_api._cpp_pmap(lambda x: x, in_axes=1)(np.ones((3, 2)))

            def test_copies_on_all():
                pxla.replicate(np.ones(2), xla_bridge.device_count(), xla_bridge.device_count(), in_axis=None)

            def test_copies_on_some():
                pxla.replicate(np.ones(2), 2, 2, jax.devices()[:2])
            """
        },
    )
    assert {name.split("::")[-1]: answer for name, answer in answers(found).items()} == {
        "test_all": (0, 1, 8, "high"),
        "test_one_inside_the_other": (4, 4, 4, "high"),
        "test_compiled": (2, 2, 2, "high"),
        "test_copies_on_all": (0, 1, 8, "high"),
        "test_copies_on_some": (2, 2, 2, "high"),
    }


def test_what_is_mapped_inside_of_the_mapped_along_some_of_the_arrays_has_a_device_for_each_place_of_these():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import numpy as np
            from jax import pmap

            def mapped(shape, outer, inner):
                assert jax.device_count() > 0
                f = pmap(lambda x, y: x - y, in_axes=inner)
                return pmap(f, in_axes=outer)(3.0, np.ones(shape))

            def test_one():
                mapped((1, 1), (None, 0), (None, 0))

            def test_two_by_two():
                mapped((2, 2), (None, 0), (None, 0))

            def test_other_axes():
                mapped((2, 9, 2), (None, 2), (None, 0))

            def test_all():
                mapped((jax.device_count(), 1), (None, 0), (None, 0))

            def test_outside_only_one_axis_is_told():
                f = pmap(lambda x: x, in_axes=1)
                pmap(f)(np.ones((2, 7, 2)))
            """
        },
    )
    assert answers(found) == {
        "test_one": (0, 1, 1, "high"),
        "test_two_by_two": (4, 4, 4, "high"),
        "test_other_axes": (4, 4, 4, "high"),
        "test_all": (0, 1, 8, "high"),
        "test_outside_only_one_axis_is_told": (4, 4, 4, "high"),
    }


def test_a_mesh_that_jax_arranges_has_a_place_for_each_device_and_one_that_it_makes_takes_the_first():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import jax.numpy as jnp
            import pytest
            from jax.experimental import mesh_utils
            from jax.sharding import Mesh, NamedSharding, PartitionSpec

            def put(devices):
                jax.device_put(jnp.ones(8), NamedSharding(Mesh(devices, ("x", "y")), PartitionSpec("x")))

            def test_four_places():
                if jax.device_count() < 4:
                    pytest.skip("needs four")
                put(mesh_utils.create_device_mesh((2, 2)))

            def test_pairs_or_one_place():
                n = jax.device_count()
                put(mesh_utils.create_device_mesh((n // 2, 2) if n % 2 == 0 else (1, 1)))

            def test_the_first_four():
                if jax.device_count() < 4:
                    pytest.skip("needs four")
                put(mesh_utils.create_device_mesh((2, 2), devices=jax.devices()[:4]))

            def test_too_many_are_refused():
                with pytest.raises(ValueError):
                    mesh_utils.create_device_mesh((1, 1), jax.devices() * 2)

            def test_made():
                if jax.device_count() < 4:
                    pytest.skip("needs four")
                jax.make_mesh((2, 2), ("x", "y"))
            """
        },
    )
    assert {name: profile(each) for name, each in found.items()} == {
        "test_four_places": "ssssrf",
        "test_pairs_or_one_place": "rrrfrr",
        "test_the_first_four": "ssssrr",
        "test_too_many_are_refused": "rrrrrr",
        "test_made": "ssssrr",
    }


def test_a_mesh_of_jaxs_without_places_is_refused_and_one_that_fits_six_devices_alone_needs_six():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import jax.numpy as jnp
            from jax.experimental import mesh_utils
            from jax.sharding import Mesh, NamedSharding, PartitionSpec

            def put(mesh):
                jax.device_put(jnp.ones(8), NamedSharding(mesh, PartitionSpec("x")))

            def test_half_of_them_made():
                put(jax.make_mesh((jax.device_count() // 2, 2), ("x", "y")))

            def test_half_of_them_arranged():
                put(Mesh(mesh_utils.create_device_mesh((jax.device_count() // 2, 2)), ("x", "y")))

            def test_on_one_slice():
                put(Mesh(mesh_utils.create_hybrid_device_mesh((2, 2), (1, 1)), ("x", "y")))

            def test_six():
                put(Mesh(mesh_utils.create_device_mesh((3, 2)), ("x", "y")))
            """
        },
    )
    assert {name: profile(each)[:6] for name, each in found.items()} == {
        "test_half_of_them_made": "ffrrrr",
        "test_half_of_them_arranged": "ffrfrr",
        "test_on_one_slice": "ffffrf",
        "test_six": "ffffff",
    }
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_half_of_them_made": (2, 2, 8),
        "test_half_of_them_arranged": (2, 2, 8),
        "test_on_one_slice": (4, 4, 4),
        "test_six": (6, 6, 6),
    }


def test_what_the_library_maps_over_devices_uses_them_and_so_do_its_objects():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/spread.py": """
            import jax

            def spread(key, count):
                return jax.pmap(lambda one: one)(jax.random.split(key, count))

            class Plain:
                def init(self, key):
                    return key

            class Spread:
                def __init__(self, inner, count=None):
                    self._count = count or jax.local_device_count()
                    self._inner = inner

                def init(self, key):
                    return jax.pmap(self._inner.init)(jax.random.split(key, self._count))
            """,
            "tests/test_it.py": """
            import jax
            from acme.spread import Plain, Spread, spread

            def test_two():
                spread(jax.random.PRNGKey(0), 2)

            def test_all():
                spread(jax.random.PRNGKey(0), jax.device_count())

            def test_object_of_two():
                Spread(Plain(), 2 if len(jax.devices()) > 1 else 1).init(jax.random.PRNGKey(0))

            def test_object_of_all():
                Spread(Plain()).init(jax.random.PRNGKey(0))

            def test_object_that_is_made():
                Spread(Plain())
                jax.random.PRNGKey(0)
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_two": (2, 2, 2),
        "test_all": (0, 1, 8),
        "test_object_of_two": (0, 1, 2),
        "test_object_of_all": (0, 1, 8),
        "test_object_that_is_made": (0, 1, 1),
    }


def test_arrays_that_are_put_into_another_shape_are_mapped_over_its_first_axis():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import jax.numpy as jnp
            import numpy as np

            def same(x):
                return x

            def test_by_a_function():
                jax.pmap(same)(jnp.reshape(jnp.arange(64), (2, -1)))

            def test_of_numpy():
                jax.pmap(same)(np.reshape(np.ones(64), (2, 32)))

            def test_in_one_row():
                jax.pmap(same)(jnp.ravel(jnp.ones((2, 2))))

            def test_in_one_row_of_numpy():
                jax.pmap(same)(np.ravel(np.ones((2, 2))))

            def test_keys_for_all():
                keys = jax.random.split(jax.random.PRNGKey(0), 64)
                keys = jnp.reshape(keys, (jax.local_device_count(), -1) + keys.shape[1:])
                jax.pmap(same)(keys)

            def test_rows_for_all():
                n, x = jax.local_device_count(), jnp.ones((64, 3))
                jax.pmap(same)(x.reshape((n, x.shape[0] // n) + x.shape[1:]))

            def test_a_tree_for_two():
                x = {"a": jnp.ones((64, 3))}
                jax.pmap(same)(jax.tree_util.tree_map(lambda x: x.reshape((2, -1) + x.shape[1:]), x))

            def test_devices():
                jax.device_put(1, list(np.reshape(jax.devices(), (-1,)))[-1])

            def test_the_third_device_of_an_array():
                jax.device_put(1, np.array(jax.devices()).reshape(-1, 1).flatten()[2])

            def test_no_device_behind_the_end():
                devices = np.array(jax.devices())
                try:
                    jax.device_put(1, devices[64])
                except IndexError:
                    jax.device_put(1, devices[0])
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_by_a_function": (2, 2, 2),
        "test_of_numpy": (2, 2, 2),
        "test_in_one_row": (4, 4, 4),
        "test_in_one_row_of_numpy": (4, 4, 4),
        "test_keys_for_all": (0, 1, 8),
        "test_rows_for_all": (0, 1, 8),
        "test_a_tree_for_two": (2, 2, 2),
        "test_devices": (0, 1, 1),
        "test_the_third_device_of_an_array": (3, 3, 3),
        "test_no_device_behind_the_end": (0, 1, 1),
    }


def test_shards_are_put_on_as_many_devices_as_there_are_shards():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import jax.numpy as jnp

            def test_four():
                jax.device_put_sharded([jnp.ones(2)] * 4, jax.devices()[:4])

            def test_two_by_name():
                jax.device_put_sharded([jnp.ones(2)] * 2, devices=jax.devices()[:2])

            def test_one_each():
                jax.device_put_sharded([jnp.ones(2) for _ in jax.devices()], jax.devices())

            def test_replicated():
                jax.device_put_replicated(jnp.ones(2), jax.devices()[:2])
            """,
        },
    )
    assert found == {
        "test_four": (4, 4, 4),
        "test_two_by_name": (2, 2, 2),
        "test_one_each": (0, 1, 8),
        "test_replicated": (0, 1, 2),
    }
