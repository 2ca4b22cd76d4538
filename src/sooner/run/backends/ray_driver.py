"""The process that talks to Ray: one agent a node, carried by an actor that holds the node's GPUs in Ray's books.

It is not the runner's own process: Ray prints on its driver's stdout, takes its signals, and waits for minutes for a
cluster that is not there. To the runner it says what it found, and gives it a socket to each agent; when the runner's
end of the first socket is closed, all is let go.
"""

import contextlib
import functools
import itertools
import os
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sooner.run.backends.relay import Relay
from sooner.run.supervision.messages import send_request

_PLACE_S: Final = 120.0
"""How long other jobs of the cluster may keep a node's GPUs before the run goes on without them, if any are there."""
_PATIENCE_S: Final = 10.0
"""After so long it is said what is waited for."""
_LATE: Final = f"its GPUs were not free for {_PLACE_S:g} s"
_MADE_UP: Final = ("virtual:", "cpu:")


class RayDriver:
    """Starts an agent on every node of a cluster that has such devices.

    Args:
        ray: The module, connected.
        runner: The socket on which the runner is told.
    """

    def __init__(self, ray: Any, runner: socket.socket) -> None:
        self._ray = ray
        self._runner = runner

    def gather(self, spec: str) -> None:
        """Give the runner a socket to an agent of each node.

        Args:
            spec: As of `--devices`, for each node. Real devices are asked of Ray, so that its other jobs keep out.
        """
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        gpus = {node["NodeID"]: 0 if spec.startswith(_MADE_UP) else _gpus(node, spec) for node in alive}
        chosen = [node for node in alive if gpus[node["NodeID"]] or spec.startswith(_MADE_UP)]
        if not chosen:
            none = f"no node of the Ray cluster has GPUs (nodes: {len(alive)}): pass --devices virtual:N"
            self._say({"error": none, "kind": "devices"})
            return
        names = dict(zip((node["NodeID"] for node in chosen), _names(chosen), strict=True))
        relays = {node_id: self._relay(node_id, gpus[node_id]) for node_id in names}
        trouble = self._placed(relays, names, may_be_fewer=spec == "auto")
        for node_id, name in names.items():
            if why := trouble[node_id]:
                self._ray.kill(relays[node_id])
                self._say({"note": f"{name} is left out: {why}"})
            else:
                self._connect(name, relays[node_id])
        self._say({"done": True})

    def _placed(self, relays: dict[str, Any], names: Mapping[str, str], *, may_be_fewer: bool) -> dict[str, str]:
        """Why each node takes no part, empty where it does; waits on while none does and one still may."""
        while True:
            trouble = self._trouble(relays)
            if may_be_fewer:
                trouble |= self._take_what_is_free([one for one, why in trouble.items() if why == _LATE], relays, names)
            if not all(trouble.values()) or _LATE not in trouble.values():
                return trouble

    def _take_what_is_free(
        self, busy: Sequence[str], relays: dict[str, Any], names: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Of nodes of which other jobs keep a part: the rest; why that cannot be had, by node."""
        free = self._free_gpus()
        partly = [node_id for node_id in busy if free.get(node_id, 0)]
        for node_id in partly:
            self._ray.kill(relays[node_id])
            relays[node_id] = self._relay(node_id, free[node_id])
        trouble = self._trouble({node_id: relays[node_id] for node_id in partly}) if partly else {}
        for node_id in partly:
            if not trouble[node_id]:
                part = f"only {free[node_id]} GPU{'s' * (free[node_id] > 1)}"
                self._say(
                    {"note": f"{names[node_id]} takes part with {part}: other jobs of the cluster have the others"}
                )
        return trouble

    def _free_gpus(self) -> Mapping[str, int]:
        """GPUs of each node that no job has now; nothing where this Ray does not say it in this way."""
        with contextlib.suppress(Exception):
            there = self._ray._private.state.available_resources_per_node()  # noqa: SLF001 - nothing public tells it
            return {node_id: int(resources.get("GPU", 0)) for node_id, resources in there.items()}
        return {}

    def _relay(self, node_id: str, gpus: int) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # A thread of its own: what waits for the agent to say something must not keep others from being heard.
        actor = self._ray.remote(num_cpus=0, max_restarts=0, concurrency_groups={"out": 1})(Relay)
        there = NodeAffinitySchedulingStrategy(node_id, soft=False)
        return actor.options(num_gpus=gpus, scheduling_strategy=there).remote(dict(os.environ))

    def _trouble(self, relays: Mapping[str, Any]) -> dict[str, str]:
        """Why the agent of each node has not started; empty where it has."""
        asked = {node_id: relay.__ray_ready__.remote() for node_id, relay in relays.items()}
        wait = functools.partial(self._ray.wait, list(asked.values()), num_returns=len(asked))
        ready, late = wait(timeout=_PATIENCE_S)
        if late:
            nodes = f"{len(late)} of {len(asked)} nodes of the Ray cluster"
            self._say({"waiting": f"Waiting for {nodes}: other jobs may have their GPUs"})
            ready, _ = wait(timeout=_PLACE_S - _PATIENCE_S)
        return {node_id: self._failure(one) if one in ready else _LATE for node_id, one in asked.items()}

    def _failure(self, ready: Any) -> str:
        try:
            self._ray.get(ready)
        except Exception as error:  # noqa: BLE001 - whatever its actor raises there: sooner is not installed, above all
            return (str(error).strip().splitlines() or [type(error).__name__])[-1]
        return ""

    def _connect(self, name: str, relay: Any) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._say({"node": name}, [theirs.fileno()])
        for carry in (self._carry_there, self._carry_back):
            threading.Thread(target=carry, args=(relay, ours), daemon=True).start()

    def _say(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        send_request(self._runner, message, fds)

    def _carry_there(self, relay: Any, channel: socket.socket) -> None:
        with channel, contextlib.suppress(OSError):
            while data := channel.recv(1 << 20):
                relay.send.remote(data)
        with contextlib.suppress(Exception):  # Ray's are many, and whatever it is, the node is let go
            self._ray.get(relay.end.remote(), timeout=10)
        with contextlib.suppress(Exception):
            self._ray.kill(relay)

    def _carry_back(self, relay: Any, channel: socket.socket) -> None:
        receive = relay.receive.options(concurrency_group="out")
        with contextlib.suppress(Exception):  # the actor is gone, however Ray calls that: so is the node
            while data := self._ray.get(receive.remote()):
                channel.sendall(data)
        with contextlib.suppress(OSError):
            channel.shutdown(socket.SHUT_RDWR)


def _gpus(node: Mapping[str, Any], spec: str) -> int:
    """How many GPUs of a node are asked for; a list names them, so all are needed to reach these."""
    there = int(node["Resources"].get("GPU", 0))
    return min(int(spec), there) if spec.isdecimal() else there


def _names(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The host names of nodes, without their domains; where several are called alike, each with a number."""
    hosts = [str(node["NodeManagerHostname"]) for node in nodes]
    hosts = [host if host.replace(".", "").isdecimal() else host.partition(".")[0] for host in hosts]
    counts = Counter(hosts)
    taken = set(counts)
    for host in hosts:
        if counts[host] == 1:
            yield host
            continue
        name = next(name for number in itertools.count(1) if (name := f"{host}-{number}") not in taken)
        taken.add(name)
        yield name


def _why(error: Exception) -> str:
    """What Ray says, without its traceback, and without the advice to pass an option that is not ours."""
    said = str(error).partition("Traceback")[0].partition(" Please specify the one")[0]
    return " ".join(said.split()) or type(error).__name__


def main() -> None:
    """Entry point: `ray_driver FD SPEC`, a socket to the runner and what is asked of each node."""
    runner = socket.socket(fileno=int(sys.argv[1]))
    runner.set_inheritable(False)
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")  # a try takes 40 s; a cluster that is gone would get 20
    try:
        import ray
    except ImportError:
        send_request(runner, {"error": "--backend ray needs Ray: pip install 'sooner[ray]'", "kind": "usage"})
        return
    try:
        ray.init(address=os.environ.get("RAY_ADDRESS") or "auto", log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # noqa: BLE001 - Ray's are many; the runner says what to do
        send_request(runner, {"error": _why(error), "kind": "unreachable"})
        return
    RayDriver(ray, runner).gather(sys.argv[2])
    runner.recv(1)  # until the runner is gone, or done
    ray.shutdown()


if __name__ == "__main__":
    main()
