"""Settings that a library makes (`ml_collections.ConfigDict`): what they are told is known."""

import pytest
from small_projects import needs_of

SETTINGS = """
    import addict
    import ml_collections
    import munch
    import torch
    from easydict import EasyDict
    from ml_collections import config_dict

    def use(count):
        for number in range(count):
            torch.ones(1, device=number)

    def made():
        settings = ml_collections.ConfigDict()
        settings.count = 1
        settings.inner = ml_collections.ConfigDict({"count": 1})
        return settings
"""
CASES = {
    "set": "settings = made(); settings.count = 2; use(settings.count)",
    "nested": "settings = made(); settings.inner.count = 2; use(settings['inner']['count'])",
    "given": "settings = ml_collections.ConfigDict({'inner': {'count': 2}}); use(settings.inner.count)",
    "updated": "settings = made(); settings.update({'count': 2}); use(settings.count)",
    "flat": "settings = made(); settings.update_from_flattened_dict({'inner.count': 2}); use(settings.inner.count)",
    "unlocked": """settings = made()
        with settings.unlocked():
            settings.count = 2
        use(settings.count)""",
    "frozen": "settings = made(); settings.count = 2; use(ml_collections.FrozenConfigDict(settings).count)",
    "as_dict": "settings = made(); settings.count = 2; use(settings.to_dict()['count'])",
    "copied": "settings = made(); settings.count = 2; use(settings.copy_and_resolve_references().count)",
    "created": "settings = config_dict.create(count=2); use(settings.count)",
    "easy": "settings = EasyDict({'inner': {'count': 2}}); use(settings.inner.count)",
    "munch": "settings = munch.munchify({'inner': {'count': 2}}); use(settings.inner.count)",
    "addict": "settings = addict.Dict(); settings.count = 2; use(settings.count)",
}


@pytest.mark.parametrize("case", CASES)
def test_settings_are_what_they_are_told(case):
    text = SETTINGS + f"\n    def test_it():\n        {CASES[case]}\n"
    found = needs_of("test_it.py", {"test_it.py": text})["test_it"]
    assert (found.min, found.full, found.confidence) == (2, 2, "high")


def test_of_settings_that_are_not_told_nothing_is_known():
    text = """
    import ml_collections
    import torch
    from elsewhere import loaded

    def test_given():
        torch.ones(1, device=ml_collections.ConfigDict(loaded()).device)

    def test_asked():
        torch.ones(1, device=ml_collections.ConfigDict().device)
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.confidence) for name, each in found.items()} == {
        "test_given": (0, "medium"),
        "test_asked": (0, "medium"),
    }
