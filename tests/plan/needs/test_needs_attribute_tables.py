"""Objects of the tests' own that are mappings: by attributes, by methods of `dict` itself, and as plain dicts."""

import pytest
from small_projects import needs_of

CLASSES = """
    import torch
    from collections import OrderedDict, defaultdict

    class Items(dict):
        def __init__(self, **given):
            for name, value in given.items():
                self[name] = value
        def __getattr__(self, name):
            return self[name]
        def __setattr__(self, name, value):
            self[name] = value

    class Ordered(OrderedDict):
        def __getattr__(self, name):
            return self[name]
        def __setattr__(self, name, value):
            super().__setitem__(name, value)

    class Plain(dict):
        __getattr__ = dict.get
        __setattr__ = dict.__setitem__
        __delattr__ = dict.__delitem__

    class Lower(dict):
        def __getitem__(self, name):
            return dict.__getitem__(self, name.lower())
        def __setitem__(self, name, value):
            dict.__setitem__(self, name.lower(), value)

    class Nested(dict):
        def __init__(self, given=None):
            for name, value in (given or {}).items():
                setattr(self, name, value)
        def __setattr__(self, name, value):
            if isinstance(value, dict):
                value = self.__class__(value)
            super().__setattr__(name, value)
            super().__setitem__(name, value)
        __setitem__ = __setattr__

    class Counted(defaultdict):
        pass

    def use(count):
        for number in range(count):
            torch.ones(1, device=number)
"""
CASES = {
    "set": "settings = Items(); settings.count = 2; use(settings.count)",
    "set_again": "settings = Items(count=1); settings.count = 2; use(settings['count'])",
    "get": "settings = Items(count=2); use(settings.get('count', 1))",
    "update": "settings = Items(count=1); settings.update(count=2); use(settings.count)",
    "nested": "settings = Items(); settings.inner = Items(); settings.inner.count = 2; use(settings.inner.count)",
    "setattr": "settings = Items(); setattr(settings, 'count', 2); use(getattr(settings, 'count', 1))",
    "hasattr": "settings = Items(count=2); use(2 if hasattr(settings, 'count') else 1)",
    "ordered": "settings = Ordered(count=1); settings.count = 2; use(settings.count)",
    "plain": "settings = Plain(count=2); use(settings.count)",
    "plain_set": "settings = Plain(); settings.count = 2; use(settings['count'])",
    "plain_none": "settings = Plain(); use(2 if settings.count is None else 1)",
    "lower": "settings = Lower(); settings['COUNT'] = 2; use(settings['count'])",
    "given": "settings = Nested({'inner': {'count': 2}}); use(settings.inner.count)",
    "given_set": "settings = Nested({'inner': {'count': 1}}); settings.inner.count = 2; use(settings.inner['count'])",
    "counted": "settings = Counted(int); settings['count'] += 2; use(settings['count'])",
    "spread": "settings = Items(count=2); use(**settings)",
    "merged": "settings = Items(count=2); use({'count': 1, **settings}['count'])",
    "joined": "settings = Items(count=1); use((settings | {'count': 2})['count'])",
    "as_dict": "settings = Items(count=2); use(dict(settings)['count'])",
    "copied": "settings = Items(count=2); other = settings.copy(); settings.count = 1; use(other['count'])",
    "equal": "use(2 if Items(count=1) == {'count': 1} else 1)",
    "cleared": "settings = Items(count=1); settings.clear(); use(1 if settings else 2)",
    "from_keys": "settings = Plain.fromkeys(['a', 'b'], 2); use(settings['a'])",
    "by_type": "use(dict.get({'count': 2}, 'count'))",
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_mapping_of_the_tests_keeps_is_known(case):
    text = CLASSES + f"\n    def test_it():\n        {CASES[case]}\n"
    found = needs_of("test_it.py", {"test_it.py": text})["test_it"]
    assert (found.min, found.full) == (2, 2)
