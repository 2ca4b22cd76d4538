"""Functions of the tests that a framework runs in their own process: of modules, of autograd, of trees, of maps."""

import pytest
from small_projects import devices_of

ON_A_DEVICE = (1, 1, 1)
ON_THE_FIRST_IF_ANY = (0, 1, 1)
ON_THE_HOST = (0, None, 0)
JAX = """
import flax, jax, jax.numpy as jnp, numpy as np, optax
from jax.experimental import pallas as pl
x = np.ones(3)
def test_it():
    {}
"""


def test_a_module_of_the_tests_that_is_called_runs_its_forward():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from torch import nn

            class Block(nn.Module):
                def forward(self, x):
                    return x + torch.ones(1, device="cuda")

            class Derived(Block):
                pass

            class Plain(nn.Module):
                def forward(self, x):
                    return x

            def test_called(): Block()(torch.ones(1))
            def test_inherited(): Derived()(torch.ones(1))
            def test_made_only(): Block()
            def test_on_the_host(): Plain()(torch.ones(1))
            def test_through_another():
                class Outer(nn.Module):
                    def __init__(self):
                        super().__init__()
                        self.inner = Block()
                    def forward(self, x):
                        return self.inner(x)
                Outer()(torch.ones(1))
            """
        },
    )
    assert found == {
        "test_called": ON_A_DEVICE,
        "test_inherited": ON_A_DEVICE,
        "test_made_only": ON_THE_HOST,
        "test_on_the_host": ON_THE_HOST,
        "test_through_another": ON_A_DEVICE,
    }


def test_a_function_of_autograds_is_applied_with_a_context_or_without_one():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            class WithContext(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x.to("cuda")

            class SetUpApart(torch.autograd.Function):
                @staticmethod
                def forward(x):
                    return x.to("cuda")
                @staticmethod
                def setup_context(ctx, inputs, output): pass

            class OnTheHost(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x

            def test_with_context(): WithContext.apply(torch.ones(1))
            def test_set_up_apart(): SetUpApart.apply(torch.ones(1))
            def test_on_the_host(): OnTheHost.apply(torch.ones(1))
            """
        },
    )
    assert found == {
        "test_with_context": ON_A_DEVICE,
        "test_set_up_apart": ON_A_DEVICE,
        "test_on_the_host": ON_THE_HOST,
    }


@pytest.mark.parametrize(
    "call",
    [
        "torch.utils.checkpoint.checkpoint(moved, torch.ones(1), use_reentrant=False)",
        "torch.autograd.gradcheck(moved, (torch.ones(1),))",
        "torch.autograd.functional.jacobian(moved, torch.ones(1))",
        "torch.func.vjp(moved, torch.ones(1))",
        "torch.func.functional_call(Moving(), {}, (torch.ones(1),))",
        "torch.jit.trace(moved, torch.ones(1))",
        "torch.export.export(Moving(), args=(torch.ones(1),))",
        "torch.utils._pytree.tree_map(lambda x: x.cuda(), [torch.ones(1)])",
        "torch.utils._pytree.tree_map_only(torch.Tensor, moved, {'a': torch.ones(1)})",
        "torch.nn.Linear(1, 1)._apply(lambda x: x.cuda())",
        "torch.nn.Linear(1, 1).apply(lambda module: module.cuda())",
        "torch.Tensor.to(torch.ones(1), 'cuda')",
        "torch.jit.trace(torch.sin, torch.ones(1)).cuda()",
        "torch.autograd.functional.jacobian(torch.sin, inputs=torch.ones(1)).to('cuda')",
    ],
)
def test_what_pytorch_is_given_to_run_is_run(call):
    text = f"""
import torch

def moved(x):
    return x.cuda()

class Moving(torch.nn.Module):
    def forward(self, x):
        return moved(x)

def test_it():
    {call}
"""
    assert devices_of("test_it.py", {"test_it.py": text}) == {"test_it": ON_A_DEVICE}


@pytest.mark.parametrize(
    "call",
    [
        "jax.tree.map(jnp.asarray, {'a': 1.0, 'b': [2.0]})",
        "jax.tree_util.tree_map(jnp.zeros_like, np.ones(3))",
        "jax.tree_util.tree_map_with_path(lambda path, x: jnp.asarray(x), {'a': 1})",
        "jax.tree.reduce(jnp.add, [np.ones(2), np.ones(2)])",
        "jax.tree.map(jax.device_put, [np.ones(3)])",
        "jax.device_put(np.ones(3))",
        "jax.vmap(jnp.sin)(np.ones(3))",
        "jax.jvp(jnp.sin, (1.0,), (1.0,))",
        "jax.vjp(jnp.sin, 1.0)",
        "jax.linearize(jnp.sin, 1.0)",
        "jax.checkpoint(jnp.sin)(1.0)",
        "jax.named_call(jnp.sin)(1.0)",
        "jax.experimental.sparse.BCOO.fromdense(np.eye(2))",
        "jnp.vectorize(lambda x: x)(np.ones(3))",
        "jax.lax.map(lambda x: x, np.ones(3))",
        "jnp.ravel(x)",
        "jax.nn.initializers.zeros(None, (3,))",
        "jax.flatten_util.ravel_pytree({'a': x})",
        "flax.linen.relu(x)",
        "flax.nnx.one_hot(3, 4)",
        "optax.l2_loss(x, x)",
        "optax.losses.softmax_cross_entropy(x, x)",
        "optax.cosine_decay_schedule(0.1, 10)(3)",
        "optax.tree_utils.tree_zeros_like({'a': x})",
        "pl.pallas_call(print, out_shape=x, interpret=True)(x)",
    ],
)
def test_what_jax_is_given_to_run_is_run(call):
    assert devices_of("test_it.py", {"test_it.py": JAX.format(call)}) == {"test_it": ON_THE_FIRST_IF_ANY}


@pytest.mark.parametrize(
    "call",
    [
        "jax.tree.map(jnp.asarray, {})",
        "jax.tree.map(np.asarray, [1.0])",
        "jax.tree.map(lambda x: x / 10.0, {'a': 1.0})",
        "jax.eval_shape(jnp.ones, 3)",
        "jnp.iscomplexobj(x)",
        "jax.lax.FftType(1)",
        "jax.random.key_dtype()",
        "optax.squared_error(x, x)",
        "optax.cosine_decay_schedule(0.1, 10)",
        "jax.nn.initializers.he_normal()",
        "jax.make_jaxpr(jnp.sin)(1.0)",
        "jax.device_put(np.ones(3), jax.devices('cpu')[0])",
    ],
)
def test_what_makes_no_array_of_jaxs_is_on_the_host(call):
    assert devices_of("test_it.py", {"test_it.py": JAX.format(call)}) == {"test_it": ON_THE_HOST}


def test_a_kernel_of_pallas_that_nobody_interprets_wants_a_device():
    text = JAX.format("pl.pallas_call(print, out_shape=x)(x)")
    assert devices_of("test_it.py", {"test_it.py": text}) == {"test_it": ON_A_DEVICE}
