"""The machines of a Ray cluster: one agent a node, carried by an actor that holds the node's GPUs in Ray's books.

Ray places the agents and carries bytes; which unit runs where stays the scheduler's. Ray's own scheduler starves wide
tasks behind narrow ones, and knows neither closeness nor leases.
"""

import contextlib
import os
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sooner.model.errors import DevicesError, SoonerError, UsageError
from sooner.run.backends.node import Node
from sooner.run.backends.relay import Relay

_PLACE_S: Final = 120.0
"""How long other jobs of the cluster may keep a node's GPUs before the run goes on without it."""
_CONNECT_S: Final = 10.0
_MADE_UP: Final = ("virtual:", "cpu:")


class RayCluster:
    """The nodes of the cluster that `RAY_ADDRESS`, or this machine, is a part of.

    Raises:
        UsageError: Ray is not installed, or no cluster is there.
    """

    def __init__(self) -> None:
        try:
            import ray
        except ImportError:
            raise UsageError("--backend ray needs Ray on this machine: pip install 'sooner[ray]'") from None
        self._ray = ray
        self._was_there = ray.is_initialized()
        self._threads: list[threading.Thread] = []
        self.nodes: list[Node] = []
        self.notes: list[str] = []
        if not self._was_there:
            address = os.environ.get("RAY_ADDRESS", "auto")
            _check_reachable(address)
            try:
                ray.init(
                    address=address,
                    log_to_driver=False,
                    logging_level="ERROR",
                    configure_logging=False,
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise _unreachable(_first_line(error)) from None

    def gather(self, spec: str, cwd: Path) -> None:
        """Start an agent on every node that has such devices; their nodes are `nodes` then, what is left out `notes`.

        Args:
            spec: As of `--devices`, for each node. Real devices are asked of Ray, so that its other jobs keep out.
            cwd: The folder of the run, which every node must have.

        Raises:
            DevicesError: No node has such devices.
        """
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        is_real = not spec.startswith(_MADE_UP)
        asked = {node["NodeID"]: _gpus(node, spec) if is_real else 0 for node in alive}
        chosen = [node for node in alive if asked[node["NodeID"]] or not is_real]
        if not chosen:
            raise DevicesError(f"none of the {len(alive)} nodes of the Ray cluster has GPUs: pass --devices virtual:N")
        relays = {node["NodeID"]: self._relay(node["NodeID"], asked[node["NodeID"]]) for node in chosen}
        ready = self._placed(relays)
        for node, name in zip(chosen, _names(chosen), strict=True):
            if node["NodeID"] not in ready:
                self.notes.append(f"{name} is left out: its GPUs were not free for {_PLACE_S:g} s")
                self._ray.kill(relays[node["NodeID"]])
                continue
            self._begin(name, relays[node["NodeID"]], spec, cwd)
        if not self.nodes:
            raise DevicesError(f"no node of the Ray cluster can be used: {'; '.join(self.notes)}")

    def _relay(self, node_id: str, gpus: int) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # Of its own thread: what waits for the agent to say something must not keep others from being heard.
        actor = self._ray.remote(num_cpus=0, max_restarts=0, concurrency_groups={"out": 1})(Relay)
        there = NodeAffinitySchedulingStrategy(node_id, soft=False)
        return actor.options(num_gpus=gpus, scheduling_strategy=there).remote(dict(os.environ))

    def _placed(self, relays: Mapping[str, Any]) -> set[str]:
        """The nodes whose agents have started within the time."""
        asked = {relay.__ray_ready__.remote(): node_id for node_id, relay in relays.items()}
        ready, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=_PLACE_S)
        return {asked[one] for one in ready}

    def _begin(self, name: str, relay: Any, spec: str, cwd: Path) -> None:
        ours, theirs = socket.socketpair()

        def let_go() -> None:
            with contextlib.suppress(Exception):  # Ray's are many, and whatever it is, the node is let go
                self._ray.get(relay.end.remote(), timeout=10)
            self._ray.kill(relay)

        for carry in (self._carry_there, self._carry_back):
            thread = threading.Thread(target=carry, args=(relay, theirs), daemon=True)
            thread.start()
            self._threads.append(thread)
        node = Node(name, ours, let_go)
        try:
            node.begin(spec, cwd)
        except SoonerError as error:
            self.notes.append(f"{error}")
            node.close()
        else:
            self.nodes.append(node)

    def _carry_there(self, relay: Any, channel: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := channel.recv(1 << 20):
                relay.send.remote(data)

    def _carry_back(self, relay: Any, channel: socket.socket) -> None:
        receive = relay.receive.options(concurrency_group="out")
        with contextlib.suppress(Exception):  # the actor is gone, however Ray calls that: so is the node
            while data := self._ray.get(receive.remote()):
                channel.sendall(data)
        with contextlib.suppress(OSError):
            channel.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let all nodes go, and leave the cluster."""
        for node in self.nodes:
            node.close()
        if not self._was_there:
            self._ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray itself tries for many minutes before it says that nobody is there."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
        except (OSError, OverflowError) as error:
            raise _unreachable(f"RAY_ADDRESS={address}: {error}") from None


def _unreachable(why: str) -> UsageError:
    return UsageError(
        f"no Ray cluster can be reached ({why}): start one with `ray start --head`, run this on one of its machines, or"
        " set RAY_ADDRESS"
    )


def _gpus(node: Mapping[str, Any], spec: str) -> int:
    """How many GPUs of a node are asked for; a list names them, so all are needed to reach these."""
    there = int(node["Resources"].get("GPU", 0))
    return min(int(spec), there) if spec.isdecimal() else there


def _names(nodes: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """The host names of nodes; where several run on one host, each with a number."""
    hosts = [str(node["NodeManagerHostname"]).partition(".")[0] for node in nodes]
    several = {host for host, count in Counter(hosts).items() if count > 1}
    seen: Counter[str] = Counter()
    for host in hosts:
        seen[host] += 1
        yield f"{host}-{seen[host]}" if host in several else host


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
