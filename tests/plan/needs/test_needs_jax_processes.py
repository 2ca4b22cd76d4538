"""Processes that JAX is given devices in, and what its own tests ask of its backends."""

from small_projects import devices_of, needs_of


def profile(needs):
    return "".join(each.value[0] for each in needs.profile.values())


def test_a_process_of_jax_that_is_given_devices_by_number_uses_these_and_sees_no_others():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess
            import sys
            import jax

            def test_each_its_own():
                for task in range(3):
                    program = (
                        "import jax; "
                        f"jax.distributed.initialize('localhost:1', 3, {task}, [{task}]); "
                        "jax.pmap(lambda x: x)(jax.numpy.ones(jax.local_device_count()))"
                    )
                    subprocess.run([sys.executable, "-c", program], check=True)

            def test_one_number():
                jax.distributed.initialize(num_processes=1, process_id=0, local_device_ids=1)
                jax.numpy.ones(3)

            def test_two_are_all_that_it_sees():
                jax.distributed.initialize(local_device_ids=[1, 3])
                assert jax.device_count() == 2 or jax.default_backend() == "cpu"

            def test_those_that_are_not_said():
                jax.distributed.initialize("localhost:1", 1, 0)
                jax.numpy.ones(3)
            """
        },
    )
    assert {name: (profile(each), each.gpu_min, each.full) for name, each in found.items()} == {
        "test_each_its_own": ("rffrrr", 3, 3),
        "test_one_number": ("rfrrrr", 2, 2),
        "test_two_are_all_that_it_sees": ("rfffrr", 4, 4),
        "test_those_that_are_not_said": ("rrrrrr", 1, 1),
    }


def test_devices_that_jax_pretends_are_all_the_first_one():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import jax
            from jax._src import test_util as jtu

            class TestIt(jtu.JaxTestCase):
                def setUp(self):
                    super().setUp()
                    jax.config.update("use_mock_gpu_client", True)

                def tearDown(self):
                    jax.config.update("use_mock_gpu_client", False)
                    jax.config.update("mock_num_gpus", 1)
                    super().tearDown()

                def test_a_mesh(self):
                    jax.config.update("mock_num_gpus", 16)
                    jtu.create_global_mesh((16,), ("x",))
                    jax.numpy.ones(3)

                def test_counted(self):
                    jax.config.update("mock_num_gpu_processes", 4)
                    if jax.default_backend() == "gpu":
                        assert len(jax.devices()) == 4 == jax.device_count()
                    jax.numpy.ones(3)

                def test_none_pretended(self):
                    jtu.create_global_mesh((4,), ("x",))
            """
        },
    )
    assert {name: (profile(each), each.gpu_min, each.full, each.confidence) for name, each in found.items()} == {
        "TestIt::test_a_mesh": ("srrrrr", 1, 1, "medium"),
        "TestIt::test_counted": ("rrrrrr", 1, 1, "medium"),
        "TestIt::test_none_pretended": ("ssssrr", 4, 4, "high"),
    }


def test_a_backend_of_jax_is_asked_for_devices_as_jax_is_under_whatever_name_it_is_imported():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import pytest
            from jax._src import xla_bridge
            from jax._src import xla_bridge as xb
            from jax.lib import xla_bridge as bridge

            def test_listed():
                assert xb.local_devices()

            def test_as_many():
                if len(xla_bridge.devices()) < 4:
                    pytest.skip("needs four")
                jax.device_put(1, xla_bridge.devices()[3])

            def test_counted():
                if xb.local_device_count() < 3:
                    return
                jax.device_put(1, jax.devices()[2])

            def test_its_backend():
                if bridge.get_backend().platform == "cpu":
                    pytest.skip("not on the host")
                assert bridge.get_backend().device_count() > 0

            def test_the_hosts_backend():
                assert xb.get_backend("cpu").local_devices()

            def test_of_a_backend_only_a_table_is_looked_at():
                assert "cpu" in xb._backend_factories
            """
        },
    )
    assert found == {
        "test_listed": (0, 1, 1),
        "test_as_many": (4, 4, 4),
        "test_counted": (0, 3, 3),
        "test_its_backend": (1, 1, 1),
        "test_the_hosts_backend": (0, None, 0),
        "test_of_a_backend_only_a_table_is_looked_at": (0, None, 0),
    }


def test_what_jaxs_own_tests_ask_about_the_make_of_a_device_counts_none():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import jax.numpy as jnp
            from jax._src import test_util as jtu

            class TestIt(jtu.JaxTestCase):
                def setUp(self):
                    if not jtu.is_device_cuda() or not jtu.is_cuda_compute_capability_at_least("8.0"):
                        self.skipTest("needs a device that can")
                    super().setUp()

                def test_mapped(self):
                    if jax.device_count() < 2:
                        self.skipTest("needs two")
                    jax.pmap(lambda x: x)(jnp.int8(jax.random.normal(jax.random.key(0), shape=(2, 16))))
            """,
            "jax/__init__.py": "",
            "jax/_src/__init__.py": "",
            "jax/_src/test_util.py": """
            from absl.testing import parameterized
            from jax._src import xla_bridge

            def is_device_cuda():
                return "cuda" in xla_bridge.get_backend().platform_version

            def is_cuda_compute_capability_at_least(capability):
                d, *_ = xla_bridge.local_devices(backend="gpu")
                return d.compute_capability >= capability

            class JaxTestCase(parameterized.TestCase):
                pass
            """,
        },
    )
    assert found == {"TestIt::test_mapped": (2, 2, 2)}


def test_jax_is_one_process_unless_it_has_joined_others_or_its_file_speaks_of_that():
    alone = """
    import jax
    import pytest

    def test_mesh():
        jax.make_mesh((jax.process_count(), jax.local_device_count()), ("x", "y"))

    def test_first():
        if jax.process_index() == 0:
            jax.device_put(1, jax.devices()[1])
    """
    joined = """
    import jax

    def test_joined():
        jax.distributed.initialize("localhost:1", 4, 1)
        for number in range(jax.process_count() - 1):
            jax.device_put(1, jax.devices()[number])

    def test_started_by_others():
        if jax.process_count() != 4:
            raise ValueError("expects four processes")
        jax.numpy.ones(3)
    """
    assert devices_of("test_it.py", {"test_it.py": alone}) == {"test_mesh": (0, 1, 8), "test_first": (2, 2, 2)}
    assert devices_of("test_it.py", {"test_it.py": joined}) == {
        "test_joined": (3, 3, 3),
        "test_started_by_others": (0, 1, 1),
    }


def test_an_option_of_absls_is_its_default_where_that_is_a_number_and_anything_else_is_not_known():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import pytest
            from absl import flags

            FLAGS = flags.FLAGS
            WIDTH = flags.DEFINE_integer("width", 4, "how wide")
            flags.DEFINE_integer("depth", 2, "how deep")
            NAME = flags.DEFINE_integer("unset", None, "set by whoever starts it")
            flags.DEFINE_bool("slow", False, "a switch")

            def test_held():
                if len(jax.devices()) < WIDTH.value:
                    pytest.skip("too narrow")
                jax.device_put(1, jax.devices()[WIDTH.value - 1])

            def test_by_its_name():
                if len(jax.devices()) < FLAGS.depth:
                    pytest.skip("too flat")
                jax.device_put(1, jax.devices()[FLAGS.depth - 1])

            def test_not_known():
                if not FLAGS.slow or NAME.value is None or FLAGS.another == "one":
                    pytest.skip("not now")
                jax.numpy.ones(3)
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_held": (4, 4, 4),
        "test_by_its_name": (2, 2, 2),
        "test_not_known": (0, 1, 1),
    }
    assert found["test_not_known"].confidence.value == "medium"


def test_what_is_mapped_inside_of_what_is_mapped_has_a_device_for_each_place_of_both_axes():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from functools import partial
            import jax
            import numpy as np
            import pytest
            from jax import pmap
            from sizes import product

            def test_both():
                x = np.arange(product((4, 4, 4))).reshape((4, 4, 4))

                @partial(pmap, axis_name="i")
                @partial(pmap, axis_name="j")
                def f(x):
                    return x

                if jax.device_count() >= 4:
                    f(x.reshape((2, 2, 4, 4)))

            def test_one():
                pmap(pmap(lambda x: x, "i"), "j")(np.arange(product((1, 1, 4))).reshape((1, 1, 4)))

            def test_as_many_as_there_are():
                shape = (jax.device_count(), 4)
                x = np.arange(product(shape), dtype=np.float32).reshape(shape)
                pmap(lambda x: x)(x)

            def test_lengths_that_differ():
                n = jax.device_count()
                with pytest.raises(ValueError):
                    pmap(lambda x, y: x + y)(np.random.randn(n), np.random.randn(n - 1))
            """
        },
    )
    assert found == {
        "test_both": (0, 4, 4),
        "test_one": (0, 1, 1),
        "test_as_many_as_there_are": (0, 1, 8),
        "test_lengths_that_differ": (0, 1, 1),
    }


def test_a_sharding_that_copies_to_devices_uses_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            from jax._src.sharding_impls import GSPMDSharding

            def test_all():
                assert GSPMDSharding.get_replicated(jax.devices()).memory_kind == "device"

            def test_two():
                GSPMDSharding.get_replicated(tuple(jax.devices()[:2]))
            """
        },
    )
    assert found == {"test_all": (0, 1, 8), "test_two": (0, 1, 2)}


def test_what_is_mapped_over_devices_that_are_named_uses_these():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from functools import partial
            import jax
            import numpy as np
            import pytest
            from jax import pmap

            def test_each():
                if jax.device_count() == 1:
                    pytest.skip("several devices")
                first, second = jax.devices()[0], jax.devices()[1]
                pmap(lambda x: x, devices=[first])(np.random.rand(1, 10))
                pmap(lambda x: x, devices=[second])(np.random.rand(1, 10))

            def test_none():
                with pytest.raises(ValueError):
                    pmap(lambda x: x, devices=[])(np.ones((jax.device_count(), 4)))

            def test_all():
                @partial(pmap, axis_name="i", devices=jax.devices())
                def f(x):
                    return x

                f(np.ones((jax.device_count(), 1)))

            def test_too_few():
                pmap(lambda x: x, devices=jax.devices()[:4])(np.ones((4, 1)))
            """
        },
    )
    assert found == {
        "test_each": (2, 2, 2),
        "test_none": (0, 1, 1),
        "test_all": (0, 1, 8),
        "test_too_few": (4, 4, 4),
    }


def test_ranks_that_only_a_program_joins_are_not_there_under_pytest():
    helper = """
        from absl.testing import parameterized
        from jax._src import distributed
        from jax._src import xla_bridge as xb

        class RanksTest(parameterized.TestCase):
            def setUp(self):
                super().setUp()
                if xb.process_count() == 1:
                    self.skipTest("needs several processes")

        def main():
            app.run(_main)

        def _main(argv):
            distributed.initialize("localhost:1", num_processes=4)
            return absltest.main()
        """
    test = """
        import jax
        from ranks import RanksTest, main

        class WideTest(RanksTest):
            def test_wide(self):
                jax.device_put(1, jax.devices()[7])

        if __name__ == "__main__":
            main()
        """
    assert devices_of("test_it.py", {"test_it.py": test, "ranks.py": helper}) == {
        "WideTest::test_wide": (None, None, None)
    }
    joins = helper.replace("def _main(argv):", "def join(argv):")
    assert devices_of("test_it.py", {"test_it.py": test, "ranks.py": joins}) == {"WideTest::test_wide": (8, 8, 8)}
    started = """
        import sys
        import jax

        import pytest

        def test_ranks():
            if jax.process_count() != 4:
                pytest.skip("needs four ranks")
            jax.device_put(1, jax.devices()[3])

        if __name__ == "__main__":
            jax.distributed.initialize("localhost:1", 4, int(sys.argv[1]))
            test_ranks()
        """
    assert devices_of("test_it.py", {"test_it.py": started}) == {"test_ranks": (None, None, None)}


def test_a_callback_gives_an_array_on_the_first_device():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import numpy as np
            from jax.experimental import io_callback

            def test_pure():
                def g(x):
                    return jax.pure_callback(lambda x: x, x, x)

                x = np.arange(6, dtype=np.int32).reshape((3, 2))
                np.testing.assert_allclose(g(x), x)

            def test_with_effects():
                io_callback(lambda: np.array(1), jax.ShapeDtypeStruct((), np.int32))
            """
        },
    )
    assert found == {"test_pure": (0, 1, 1), "test_with_effects": (0, 1, 1)}


def test_the_hosts_devices_beside_given_ones_are_as_many_and_the_hosts():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import numpy as np
            import pytest
            from jax._src import test_util as jtu
            from jax.experimental import colocated_python

            jtu.request_cpu_devices(8)

            def test_two():
                beside = colocated_python.colocated_cpu_devices(jax.local_devices())[:2]
                if len(beside) < 2:
                    pytest.skip("Not enough CPU devices")
                jax.device_put(np.arange(2), beside[1])

            def test_all():
                beside = colocated_python.colocated_cpu_devices(jax.devices())
                assert len(beside) == jax.device_count()
            """
        },
    )
    assert found == {"test_two": (0, 2, 2), "test_all": (0, 1, 1)}
