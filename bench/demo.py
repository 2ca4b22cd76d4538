"""`make demo`: a real sequential GPU test script, unmodified, on 8 virtual devices.

Writes the 49 pytest calls of Transformer Engine's L0 script with stub tests (`transformer_engine.py`), runs it through
`sooner script`, and says what the same durations would have cost in waves and one after the other. Then it runs the
distributed example suite through `pytest --gpus`.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import transformer_engine

DEVICES = "virtual:8"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="mean seconds of a stub test file (default 1)")
    scale = parser.parse_args().scale
    folder = Path(".sooner/demo")
    script = transformer_engine.make_suite(folder, seed=0, scale=scale)
    sooner = [sys.executable, "-m", "sooner"]
    out = folder / "out"
    command = [*sooner, "script", str(script), "--devices", DEVICES, "--out", str(out)]
    print(f"$ sooner script {script} --devices {DEVICES} --out {out}\n", flush=True)
    done = subprocess.run(command, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    if done.returncode:
        return done.returncode
    print(f"\n{comparison(out)}")
    return distributed_examples()


def distributed_examples() -> int:
    """The second half: real distributed tests of torch, on ranks that are kept between tests."""
    folder = Path("examples/torch_distributed")
    command = [sys.executable, "-m", "pytest", "-q", "--gpus=virtual:4", "--reuse-stats", "--history=none"]
    print(f"\n$ pytest --gpus=virtual:4 --reuse-stats   (in {folder})\n", flush=True)
    return subprocess.run(command, check=False, cwd=folder).returncode


def comparison(out: Path) -> str:
    """What the durations that were just measured add up to, and what waves would have made of them."""
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    attempts = [attempt for result in results for attempt in result["attempts"]]
    took = max(a["ended_at"] for a in attempts) - min(a["started_at"] for a in attempts)
    seconds = {f"{r['unit']}|{r['variant']}" if r["variant"] else r["unit"]: r["duration_s"] for r in results}
    sequential = sum(seconds.values())
    waves = simulated_waves(seconds)
    return "\n".join(
        [
            "The same 49 calls, each as long as it took here, beside seven others:",
            f"  their sum            {sequential:6.1f} s",
            f"  in waves of eight    {waves:6.1f} s   {sequential / waves:4.1f} x faster",
            f"  sooner               {took:6.1f} s   {sequential / took:4.1f} x faster",
            "Where CPUs are few, each is shorter alone: `python bench/transformer_engine.py` times the script itself.",
        ]
    )


def simulated_waves(seconds: dict[str, float]) -> float:
    """Wall time of waves of eight: each lasts as long as its longest member."""
    durations = list(seconds.values())
    return sum(max(durations[i : i + 8]) for i in range(0, len(durations), 8))


if __name__ == "__main__":
    sys.exit(main())
