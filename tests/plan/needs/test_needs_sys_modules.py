"""What a test puts in the place of a whole module, by `sys.modules`."""

from small_projects import needs_of

LIBRARY = {
    "src/bolt/__init__.py": "",
    "src/bolt/devices.py": """
    import torch

    def put():
        return torch.ones(3, device="cuda:2")
    """,
    "src/bolt/work.py": """
    from bolt.devices import put

    def work():
        return put()

    def work_later():
        from bolt.devices import put as late
        return late()
    """,
}


def answers(tests: str) -> dict[str, tuple[int | None, str]]:
    found = needs_of("tests/test_it.py", LIBRARY | {"tests/test_it.py": tests})
    return {name: (each.gpu_min, each.confidence) for name, each in found.items()}


def test_a_module_may_be_a_mock():
    found = answers("""
    import importlib
    import sys
    import types
    from unittest.mock import MagicMock, patch
    import pytest

    def test_by_monkeypatch(monkeypatch):
        monkeypatch.setitem(sys.modules, "bolt.devices", MagicMock())
        from bolt.devices import put
        put()

    @patch.dict("sys.modules", {"bolt.devices": MagicMock()})
    def test_by_patch():
        import bolt.devices as devices
        devices.put()
        importlib.import_module("bolt.devices").put()
        sys.modules["bolt.devices"].put()

    def test_itself():
        sys.modules["bolt.devices"] = types.ModuleType("bolt.devices")
        from bolt.devices import put
        put()

    def test_inside_a_function():
        from bolt import work
        with patch.dict(sys.modules, {"bolt.devices": MagicMock()}):
            work.work_later()

    def test_of_the_package():
        with patch.dict(sys.modules, {"bolt.devices": MagicMock()}):
            from bolt import devices
            devices.put()

    def test_that_is_not_there(monkeypatch):
        monkeypatch.setitem(sys.modules, "bolt.devices", None)
        with pytest.raises(ImportError):
            from bolt.devices import put

    def test_outside(monkeypatch):
        monkeypatch.setitem(sys.modules, "pynvml", MagicMock())
        import pynvml
        pynvml.nvmlInit()
        assert pynvml.nvmlDeviceGetHandleByIndex(1)
    """)
    of_the_host = (None, "high")
    assert found == {
        "test_by_monkeypatch": of_the_host,
        "test_by_patch": of_the_host,
        "test_itself": of_the_host,
        "test_inside_a_function": of_the_host,
        "test_of_the_package": (None, "medium"),
        "test_that_is_not_there": of_the_host,
        "test_outside": of_the_host,
    }


def test_a_module_is_itself_again_where_it_is_put_back():
    found = answers("""
    import sys
    from unittest.mock import MagicMock, patch

    def test_after():
        with patch.dict(sys.modules, {"bolt.devices": MagicMock()}):
            pass
        from bolt.devices import put
        put()

    def test_undone(monkeypatch):
        monkeypatch.setitem(sys.modules, "bolt.devices", MagicMock())
        monkeypatch.undo()
        from bolt.devices import put
        put()

    def test_of_another(monkeypatch):
        monkeypatch.setitem(sys.modules, "bolt.devices", MagicMock())
        from bolt.work import work
        work()
    """)
    assert found == {"test_after": (3, "high"), "test_undone": (3, "high"), "test_of_another": (3, "medium")}


def test_a_module_that_a_file_replaces():
    found = answers("""
    import sys
    from unittest.mock import MagicMock

    sys.modules["bolt.devices"] = MagicMock()
    from bolt.devices import put

    def test_of_all():
        put()
    """)
    assert found == {"test_of_all": (None, "high")}


def test_several_modules_are_replaced_and_imports_may_be():
    found = answers("""
    import sys
    from unittest.mock import MagicMock, patch

    def test_several():
        sys.modules.update({"bolt.devices": MagicMock()})
        from bolt.devices import put
        put()

    def test_of_imports():
        with patch("builtins.__import__", side_effect=ImportError):
            from bolt.devices import put
            put()
    """)
    assert found == {"test_several": (None, "high"), "test_of_imports": (3, "medium")}


def test_a_file_is_imported_by_its_path():
    found = answers("""
    import importlib.util
    import os
    from importlib.machinery import SourceFileLoader
    from pathlib import Path

    ROOT = Path(__file__).resolve().parents[1]

    def load(path):
        spec = importlib.util.spec_from_file_location("devices", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_by_a_path():
        load(ROOT / "src" / "bolt" / "devices.py").put()

    def test_by_a_text():
        load(os.path.join(os.path.dirname(__file__), "..", "src", "bolt", "devices.py")).put()

    def test_by_a_loader():
        loader = SourceFileLoader("devices", str(ROOT / "src" / "bolt" / "devices.py"))
        spec = importlib.util.spec_from_loader("devices", loader)
        importlib.util.module_from_spec(spec).put()

    def test_elsewhere(tmp_path):
        load(tmp_path / "devices.py").put()
    """)
    assert found == {
        "test_by_a_path": (3, "high"),
        "test_by_a_text": (3, "high"),
        "test_by_a_loader": (3, "high"),
        "test_elsewhere": (None, "medium"),
    }
