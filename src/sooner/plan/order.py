"""The order that `after` asks for: whether there is one."""

from collections.abc import Mapping, Sequence


def find_cycle(after: Mapping[str, Sequence[str]]) -> list[str]:
    """Nodes that wait for each other, the first one repeated at the end; empty where an order exists.

    Iterative depth-first search: linear in nodes and edges, and no chain is too long for it.
    """
    done: set[str] = set()
    for root in after:
        cycle = _cycle_from(root, after, done) if root not in done else []
        if cycle:
            return cycle
    return []


def _cycle_from(root: str, after: Mapping[str, Sequence[str]], done: set[str]) -> list[str]:
    path, on_path = [root], {root}
    pending = [iter(after[root])]
    while pending:
        step = next((node for node in pending[-1] if node not in done), None)
        if step is None:
            pending.pop()
            done.add(path[-1])
            on_path.discard(path.pop())
        elif step in on_path:
            return [*path[path.index(step) :], step]
        else:
            path.append(step)
            on_path.add(step)
            pending.append(iter(after[step]))
    return []
