"""Work that JAX maps over devices: along which axes, of what size, and what is refused before it runs."""

from small_projects import devices_of, needs_of


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
