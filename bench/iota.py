"""The iota experiment: 4,500 tests that each need a client with 112 streams, with and without a resource pool.

The costs are those that ROCm/xla pull request 861 publishes for one test on 8 AMD devices: 406 ms to create the client,
513 ms to destroy it, 90 ms of work. They are *accounted* on a pretended clock, not slept: 4,500 tests would take 75
minutes. What the pool itself costs is real time and is added. A second run injects what the review of that request
asks about: callbacks in flight at the end of a test, resets that fail, configurations that change in use, sticky device
errors; every lease is checked: nothing is ever handed out dirty, in flight, sick or under another configuration.
"""

import random
import time
from typing import Final

from figures import machine, save, table
from sooner.warm import Kind, ResourcePool

TESTS: Final = 4500
CREATE_MS: Final = 406.0
DESTROY_MS: Final = 513.0
WORK_MS: Final = 90.0
FAULTS: Final = {
    "callback in flight": 0.05,
    "reset fails": 0.002,
    "configuration changes": 0.002,
    "sticky error": 0.002,
}
"""Share of tests that leave this behind."""


class Driver:
    """A pretended driver: it accounts costs, and remembers the state that a test leaves."""

    def __init__(self) -> None:
        self.spent_ms = 0.0


class Client:
    """What the driver makes: streams of a configuration."""

    def __init__(self, config: tuple[str, int]) -> None:
        self.config = config
        self.in_flight = False
        self.dirty = False
        self.sticky = False
        self.reset_fails = False


class Clients(Kind[tuple[str, int], Client]):
    """How clients are made and checked."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def make(self, config: tuple[str, int]) -> Client:
        self.driver.spent_ms += CREATE_MS
        return Client(config)

    def fingerprint(self, thing: Client, config: tuple[str, int]) -> tuple[str, int]:
        del config
        return thing.config

    def drain(self, thing: Client) -> None:
        thing.in_flight = False

    def reset(self, thing: Client) -> None:
        if thing.in_flight:
            raise AssertionError("reset while a callback is in flight")
        if thing.reset_fails:
            raise RuntimeError("hipErrorUnknown")
        thing.dirty = False

    def healthy(self, thing: Client) -> bool:
        return not thing.sticky

    def destroy(self, thing: Client) -> None:
        del thing
        self.driver.spent_ms += DESTROY_MS


def without_pool() -> float:
    """Milliseconds a test when every test makes and destroys its client."""
    driver = Driver()
    clients = Clients(driver)
    for _ in range(TESTS):
        thing = clients.make(("gpu", 112))
        driver.spent_ms += WORK_MS
        clients.destroy(thing)
    return driver.spent_ms / TESTS


def with_pool(faults: dict[str, float], seed: int = 0) -> tuple[float, float, int, ResourcePool]:
    """Milliseconds a test in all, of them spent by the pool itself, and how many leases were wrong."""
    driver, source, wrong = Driver(), random.Random(seed), 0
    clients, pool = Clients(driver), ResourcePool()
    began = time.perf_counter()
    for _ in range(TESTS):
        config = ("gpu", source.choice((112, 112, 112, 16))) if faults else ("gpu", 112)
        with pool.lease(clients, config) as lease:
            client = lease.thing
            wrong += client.dirty or client.in_flight or client.sticky or client.config != config
            driver.spent_ms += WORK_MS
            client.dirty = True
            leave_behind(client, faults, source)
    pool.close()
    overhead_ms = (time.perf_counter() - began) * 1000 / TESTS
    return driver.spent_ms / TESTS + overhead_ms, overhead_ms, wrong, pool


def leave_behind(client: Client, faults: dict[str, float], source: random.Random) -> None:
    for fault, share in faults.items():
        if source.random() >= share:
            continue
        match fault:
            case "callback in flight":
                client.in_flight = True
            case "reset fails":
                client.reset_fails = True
            case "configuration changes":
                client.config = ("gpu", -1)
            case "sticky error":
                client.sticky = True


def main() -> None:
    before = without_pool()
    clean, clean_overhead, clean_wrong, _ = with_pool({})
    faulty, faulty_overhead, faulty_wrong, pool = with_pool(FAULTS)
    rows = [
        ["a client a test", f"{before:.1f}", "-", "-", "-"],
        ["pool", f"{clean:.1f}", f"{clean_overhead * 1000:.0f}", clean_wrong, "-"],
        ["pool, faults injected", f"{faulty:.1f}", f"{faulty_overhead * 1000:.0f}", faulty_wrong, destroyed(pool)],
    ]
    print(table([f"{TESTS} tests", "ms a test", "pool itself, us", "wrong leases", "destroyed for"], rows))
    figures = {"before_ms": before, "pool_ms": clean, "faults_ms": faulty, "wrong": clean_wrong + faulty_wrong}
    print(f"\n{save('iota', {'machine': machine(), 'figures': figures})}")


def destroyed(pool: ResourcePool) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in pool.statistics.destroyed.items() if count)


if __name__ == "__main__":
    main()
