"""What `sooner needs` says of each public function of JAX, Flax and Optax, against what it does when it is called.

A test is written for each function, with the first arguments that it takes (`written_functions.py`), NumPy's arrays and
Python's numbers, and run with devices that JAX is made to believe in (`needs_against_run.py --pretended`): those that
make arrays use one. Nothing here was labelled by hand; what a function does with other arguments is not seen.

    python bench/needs_functions.py --python EXE [MODULE ...]
"""

import argparse
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from figures import table
from needs_against_run import misused, outcomes, profiles

_MODULES: Final = (
    "jax", "jax.numpy", "jax.lax", "jax.nn", "jax.nn.initializers", "jax.random", "jax.image", "jax.ops",
    "jax.scipy.linalg", "jax.scipy.special", "jax.scipy.stats", "jax.scipy.signal", "jax.numpy.linalg",
    "jax.numpy.fft", "jax.tree", "jax.tree_util", "jax.dtypes", "jax.sharding", "jax.flatten_util",
    "jax.experimental.sparse", "jax.experimental.multihost_utils", "flax.linen", "flax.nnx", "flax.traverse_util",
    "flax.training.common_utils", "optax", "optax.losses", "optax.schedules", "optax.tree_utils",
)  # fmt: skip
_WRITER: Final = Path(__file__).parent / "written_functions.py"


def main() -> None:
    """Write, run, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=_MODULES)
    parser.add_argument("--python", required=True, help="the interpreter that has JAX, Flax and Optax")
    parser.add_argument("--devices", type=int, choices=(1, 2, 3, 4, 8), default=2)
    parser.add_argument("--seconds", type=float, default=300.0, help="the most that the functions of a module take")
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    options.pretended, options.sample = True, 0
    with tempfile.TemporaryDirectory() as folder:
        tree, files = Path(folder), []
        for module in options.modules:
            text = subprocess.run(
                [options.python, str(_WRITER), module], capture_output=True, text=True, check=True, timeout=600
            ).stdout
            files.append(f"test_{module.replace('.', '_')}.py")
            (tree / files[-1]).write_text(text)
        tests = profiles(tree, files)
        found, used = outcomes(tree, files, options)
    passed = [name for name, (outcome, _) in found.items() if outcome == "passed" and name in tests]
    wrong = {name: how for name in passed if (how := misused(tests[name], options.devices, len(used.get(name, ()))))}
    rows = []
    for module, path in zip(options.modules, files, strict=True):
        here = [name for name in passed if name.startswith(f"{path}::")]
        rows.append([module, str(len(here)), str(sum(name not in wrong for name in here))])
    rows.append(["together", str(len(passed)), str(len(passed) - len(wrong))])
    print(table(["module", "functions that passed", "used the devices that were said"], rows))
    sure = Counter(tests[name]["confidence"] for name in wrong)
    print(f"others: {', '.join(f'{count} {confidence}' for confidence, count in sorted(sure.items())) or 'none'}")
    for name, how in list(wrong.items())[: options.show]:
        print(f"{how} ({tests[name]['confidence']}): {name.partition('::test_')[2]}")


if __name__ == "__main__":
    main()
