"""A plugin of pytest that keeps what becomes of each test, for `needs_against_pytest.py`."""

import json, os, torch
kept, counts = {}, {}
USES = os.environ.get("KEPT_USES", os.devnull)
def pytest_runtest_logstart():
    torch.indices.clear()
    open(USES, "w").close()
def pytest_runtest_logreport(report):
    outcome = "skip" if report.skipped else "fail" if report.failed else "run"
    if report.when != "teardown" and kept.get(report.nodeid) in (None, "run"):
        kept[report.nodeid] = outcome
        counts[report.nodeid] = len(set(map(int, open(USES))) | torch.indices)
def pytest_collectreport(report):
    if report.failed:
        kept["collection failed: " + report.nodeid] = str(report.longrepr)
    elif report.skipped:
        kept["skipped: " + report.nodeid] = ""
def pytest_sessionfinish():
    if "COUNT_DEVICES" in os.environ:
        kept.update({name: ["run", counts[name]] for name, what in kept.items() if what == "run"})
    with open(os.environ["KEPT_OUTCOMES"], "w") as file:
        json.dump(kept, file)
