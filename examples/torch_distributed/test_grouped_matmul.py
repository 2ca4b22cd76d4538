"""Grouped matrix multiplication through AOTInductor: exported, compiled to C++ and packaged once, then loaded and run.

Skipped where the build has no such operator, or the machine no compiler. Values are small whole numbers: products of
them are exact in bfloat16, so results must be equal.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROWS, INNER, COLUMNS, GROUPS = 24, 16, 8, 3
Runner = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class GroupedMatmul(torch.nn.Module):
    """Rows up to the first offset with the first matrix, rows up to the second with the second, and so on."""

    def forward(self, rows: torch.Tensor, matrices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """The products, one below the other."""
        return F.grouped_mm(rows, matrices, offs=offsets)


def inputs(*ends: int, dtype: torch.dtype = torch.bfloat16) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(len(ends))
    rows = torch.randint(-4, 5, (ROWS, INNER), generator=source).to(DEVICE, dtype)
    matrices = torch.randint(-4, 5, (GROUPS, INNER, COLUMNS), generator=source).to(DEVICE, dtype)
    return rows, matrices, torch.tensor(ends, dtype=torch.int32, device=DEVICE)


def one_by_one(rows: torch.Tensor, matrices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    starts = [0, *offsets.tolist()[:-1]]
    parts = [rows[a:b] @ matrix for a, b, matrix in zip(starts, offsets.tolist(), matrices, strict=True)]
    return torch.cat(parts)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: about 15 s, most of it in the C++ compiler."""
    if not hasattr(F, "grouped_mm") or not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("needs torch.nn.functional.grouped_mm and a C++ compiler")
    try:
        GroupedMatmul()(*inputs(8, 16, 24))
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"this build has no grouped_mm for {DEVICE}: {error}")
    exported = torch.export.export(GroupedMatmul(), inputs(8, 16, 24))
    path = tmp_path_factory.mktemp("package") / "grouped_matmul.pt2"
    torch._inductor.aoti_compile_and_package(exported, package_path=str(path))
    return path


@pytest.fixture(scope="module")
def packaged(package: Path) -> Runner:
    runner: Runner = torch._inductor.aoti_load_package(str(package))
    return runner


@pytest.mark.gpus(1)
@pytest.mark.parametrize("ends", [(8, 16, 24), (1, 2, 24), (5, 23, 24), (24, 24, 24), (0, 12, 24)], ids=str)
def test_groups_of_any_size_are_multiplied_exactly(packaged, ends):
    found = packaged(*inputs(*ends))
    assert torch.equal(found, one_by_one(*inputs(*ends)))
    assert torch.equal(found, GroupedMatmul()(*inputs(*ends)))


@pytest.mark.gpus(1)
def test_the_package_holds_compiled_code_and_its_cpp_wrapper(package):
    import zipfile

    names = zipfile.ZipFile(package).namelist()
    assert any(name.endswith(".so") for name in names)
    assert any(name.endswith("wrapper.cpp") for name in names)


@pytest.mark.gpus(1)
def test_two_loaded_packages_do_not_disturb_each_other(package, packaged):
    other: Runner = torch._inductor.aoti_load_package(str(package))
    first = packaged(*inputs(8, 16, 24))
    assert torch.equal(other(*inputs(1, 2, 24)), one_by_one(*inputs(1, 2, 24)))
    assert torch.equal(first, one_by_one(*inputs(8, 16, 24)))


@pytest.mark.gpus(1)
@pytest.mark.xfail(
    strict=True,
    raises=pytest.RaisesExc(RuntimeError, match="Expected inputs of BF16 type"),
    reason="torch 2.13: runs in float32, and is exported in bfloat16 only",
)
def test_single_precision_is_exported():
    values = inputs(8, 16, 24, dtype=torch.float32)
    torch.testing.assert_close(GroupedMatmul()(*values), one_by_one(*values))
    torch.export.export(GroupedMatmul(), values)
