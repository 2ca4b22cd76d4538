"""What a worker does around each test so that the next one finds the process as this one did.

A test's own state is what changes between the set-up of its first function-scoped fixture and the end of its
function-scoped tear-down; what fixtures of classes, modules and the session set up before that stays. When the last
wider fixture of a unit is gone as well, the process is put back to where it was before the unit, unless a fixture of
the session was set up meanwhile.
"""

from typing import Any, cast

import pytest

from sooner.warm.guards import Cleaned, GuardSet, seed_from

_UNTOUCHED = Cleaned()


class _Sibling:
    """Stands for "another item of the same parent": only the item itself is torn down."""

    def __init__(self, item: Any) -> None:
        self._chain: list[Any] = item.listchain()[:-1]
        self.config = item.config
        self.session = item.session
        self.nodeid = ""

    def listchain(self) -> list[Any]:
        return self._chain


class Guarding:
    """A plugin of the worker's pytest: captures before a test and cleans after it.

    Args:
        session: The session whose items run here.
    """

    def __init__(self, session: pytest.Session) -> None:
        self._guards: GuardSet | None = None
        self._setup_state = cast("Any", session._setupstate)  # noqa: SLF001 - as _pytest.runner does
        self._tear_down = self._setup_state.teardown_exact
        self._setup_state.teardown_exact = self._teardown_exact  # there is no hook between the two scopes
        self._before: tuple[Any, ...] | None = None
        self._before_unit: tuple[Any, ...] | None = None
        self._item: pytest.Item | None = None
        self._late = False
        self._known: tuple[Any, ...] | None = None
        """The state as it was captured, while nothing but tests that left it alone has run since."""
        self.cleaned = _UNTOUCHED
        """What came of the item that ran last."""

    def use(self, guards: GuardSet) -> None:
        """Put back and watch; not called where the process ends with its unit anyway."""
        self._guards = guards

    def begin_unit(self) -> None:
        """Remember how the process was before the unit."""
        self._before_unit = self._guards.capture() if self._guards else None

    def end_unit(self) -> Cleaned:
        """Put the process back to where it was before the unit, if nothing that must stay was set up in it."""
        before, self._before_unit = self._before_unit, None
        self._known = None
        return self._guards.clean(before) if self._guards and before is not None else _UNTOUCHED

    def begin(self, item: pytest.Item) -> None:
        """Forget the item before; the random generators depend on the id of this one alone."""
        self._before, self._late, self._item = None, False, item
        self.cleaned = _UNTOUCHED
        seed_from(item.nodeid)

    def _capture(self) -> None:
        if self._before is None and self._guards is not None:
            self._before = self._known = self._known or self._guards.capture()

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> None:
        """Capture before the first fixture that belongs to the test alone."""
        if fixturedef.scope == "function":
            self._capture()
            return
        self._late = self._late or self._before is not None
        self._known = None
        if fixturedef.scope == "session":
            self._before_unit = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        """Capture where the test has no fixture of its own."""
        self._capture()

    def _teardown_exact(self, nextitem: Any) -> None:
        """Tear down in two steps, function scope and what is wider, with the cleaning between them."""
        __tracebackhide__ = True
        item, self._item = self._item, None
        depth = len(self._setup_state.stack)
        failures: list[BaseException] = []
        if item is not None and item in self._setup_state.stack:
            self._try(_Sibling(item), failures)
            self._clean()
        self._try(nextitem, failures)
        if len(self._setup_state.stack) < depth - 1:
            self._known = None
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise BaseExceptionGroup("errors during test teardown", failures[::-1])

    def _try(self, nextitem: Any, failures: list[BaseException]) -> None:
        __tracebackhide__ = True
        try:
            self._tear_down(nextitem)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001 - raised above
            failures.append(error)

    def _clean(self) -> None:
        """Put back what the test changed; if it set up something wider late, what is its own cannot be told."""
        if self._guards is None or self._before is None or self._late:
            return
        self.cleaned = self._guards.clean(self._before)
        if self.cleaned != _UNTOUCHED:
            self._known = None
