"""A plugin of pytest that keeps what becomes of each test, for `needs_against_pytest.py`."""

import json, os
kept = {}
def pytest_runtest_logreport(report):
    outcome = "skip" if report.skipped else "fail" if report.failed else "run"
    if report.when != "teardown" and kept.get(report.nodeid) in (None, "run"):
        kept[report.nodeid] = outcome
def pytest_collectreport(report):
    if report.failed:
        kept["collection failed: " + report.nodeid] = str(report.longrepr)
    elif report.skipped:
        kept["skipped: " + report.nodeid] = ""
def pytest_sessionfinish():
    with open(os.environ["KEPT_OUTCOMES"], "w") as file:
        json.dump(kept, file)
