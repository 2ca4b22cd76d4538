"""The stand-in's launcher: a process a rank, on this node."""

import os, subprocess, sys

def main():
    words, ranks = sys.argv[1:], 1
    while words and words[0].startswith("-"):
        name, _, value = words.pop(0).lstrip("-").replace("-", "_").partition("=")
        if name == "standalone":
            continue
        value = value or words.pop(0)
        if name == "nproc_per_node":
            ranks = int(os.environ["STAND_IN_DEVICES"]) if value == "gpu" else int(value)
    if not ranks:
        sys.exit("no ranks")
    started = [
        subprocess.Popen(
            [sys.executable, *words],
            env=os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)},
        )
        for rank in range(ranks)
    ]
    sys.exit(max(map(abs, [each.wait() for each in started])))

if __name__ == "__main__":
    main()
