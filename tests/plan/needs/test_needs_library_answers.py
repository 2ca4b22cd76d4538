"""What the library under test is asked: flags of what is installed, sizes that it works out, tensors of the host."""

from small_projects import devices_of

ENGINE = {
    "transformer_engine/__init__.py": "",
    "transformer_engine/pytorch/__init__.py": "",
    "transformer_engine/pytorch/attention.py": """
        def checked_window(mask, window=None):
            if "causal" in mask and (window is None or window == (-1, -1)):
                window = (-1, 0)
            return window
        """,
    "transformer_engine/pytorch/jit.py": """
        import torch

        def fused(x, eps):
            return torch.ops.fused(x, eps)
        """,
}


def test_a_tensor_that_is_made_on_the_host_by_name_is_one_of_the_host():
    found = devices_of(
        "tests/test_it.py",
        ENGINE
        | {
            "tests/test_it.py": """
            import torch
            from transformer_engine.pytorch.jit import fused

            def test_host():
                fused(torch.randn(4, 4, device="cpu"), 1e-6)

            def test_nothing_named():
                fused(torch.randn(4, 4, device=None), 1e-6)

            def test_where_there_is_a_device():
                device = "cuda" if torch.cuda.is_available() else "cpu"
                fused(torch.randn(4, 4, device=device), 1e-6)

            def test_device():
                fused(torch.randn(4, 4, device="cuda"), 1e-6)
            """
        },
    )
    assert found == {
        "test_host": (0, None, 0),
        "test_nothing_named": (0, None, 0),
        "test_where_there_is_a_device": (0, 1, 1),
        "test_device": (1, 1, 1),
    }
