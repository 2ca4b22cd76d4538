"""Programs that a test has as texts (`python -c TEXT`): what they use, the test uses."""

import textwrap

import pytest
from small_projects import devices_of

HEAD = """
import os, subprocess, sys, textwrap
import torch

"""


def needs(*tests):
    return devices_of("test_it.py", {"test_it.py": HEAD + "\n".join(textwrap.dedent(one) for one in tests)})


def test_a_program_that_must_not_fail_needs_the_devices_that_it_uses():
    found = needs(
        """
        def test_run():
            subprocess.run([sys.executable, "-c", "import torch; torch.ones(1, device='cuda:3')"], check=True)
        """,
        '''
        def test_lines(tmp_path):
            script = textwrap.dedent(f"""
                import torch
                x = torch.ones(4).cuda()
                torch.save(x, "{tmp_path}/x")
            """)
            subprocess.check_call(["python3", "-c", script])
        ''',
    )
    assert found == {"test_run": (4, 4, 4), "test_lines": (1, 1, 1)}


def test_a_program_that_may_fail_uses_the_devices_that_there_are():
    found = needs(
        """
        def test_it():
            done = subprocess.run([sys.executable, "-c", "import torch; torch.ones(1).cuda()"])
            assert done.returncode != 0
        """
    )
    assert found == {"test_it": (0, 1, 1)}


def test_a_program_that_asks_for_devices_or_sees_others_or_none_needs_none():
    found = needs(
        """
        def test_counts():
            subprocess.check_output([sys.executable, "-c", "import torch; print(torch.cuda.device_count())"])

        def test_asks():
            text = "import torch; torch.cuda.is_available() and torch.ones(1).cuda()"
            subprocess.check_output([sys.executable, "-c", text])

        def test_hidden():
            text = "import torch; torch.ones(1).cuda()"
            subprocess.run([sys.executable, "-c", text], check=True, env={"CUDA_VISIBLE_DEVICES": ""})

        def test_shell():
            subprocess.check_call(["bash", "-c", "import torch; torch.ones(1).cuda()"])

        def test_no_program():
            subprocess.check_call([sys.executable, "-c", "this is no Python"])
        """
    )
    none = (0, None, 0)
    assert found == {
        "test_counts": none, "test_asks": (0, 1, 1), "test_hidden": none, "test_shell": none, "test_no_program": none,
    }  # fmt: skip


def test_what_a_program_sets_does_not_stay():
    found = needs(
        """
        def test_it():
            text = "import os, torch; os.environ['MODE'] = 'gpu'; torch.ones(1)"
            subprocess.check_call([sys.executable, "-c", text])
            if os.environ.get("MODE") == "gpu":
                torch.ones(1).cuda()
        """
    )
    assert found == {"test_it": (0, None, 0)}


DELETED = {
    "by the patch": "monkeypatch.setenv('KIND', 'x')\n    monkeypatch.delenv('KIND', raising=False)\n",
    "by the statement": "os.environ['KIND'] = 'x'\n    del os.environ['KIND']\n",
    "by its method": "os.environ['KIND'] = 'x'\n    os.environ.pop('KIND', None)\n",
    "with all others": "os.environ['KIND'] = 'x'\n    os.environ.clear()\n",
    "at the end of a context": "with monkeypatch.context() as m:\n        m.setenv('KIND', 'x')\n",
}


@pytest.mark.parametrize("how", DELETED)
def test_a_variable_of_the_environment_that_was_deleted_is_not_set(how):
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": "import os, pytest, torch\ndef test_it(monkeypatch):\n"
            f"    {DELETED[how]}"
            "    if 'KIND' in os.environ or 'KIND' in os.environ.copy() or os.environ.setdefault('KIND', 'y') != 'y':\n"
            "        pytest.skip('set')\n"
            "    torch.ones(1).cuda()\n"
        },
    )
    assert found == {"test_it": (1, 1, 1)}


def test_a_patched_environment_may_be_cleared_and_one_in_a_context_is_what_the_test_says():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            from unittest import mock

            import torch

            def use():
                torch.ones(1, device=f"cuda:{os.environ.get('LAST', '0')}")

            def test_cleared():
                os.environ["LAST"] = "3"
                with mock.patch.dict(os.environ, {"OTHER": "1"}, clear=True):
                    use()

            def test_in_context(monkeypatch):
                with monkeypatch.context() as m:
                    m.setenv("LAST", "2")
                    use()
            """
        },
    )
    assert found == {"test_cleared": (1, 1, 1), "test_in_context": (3, 3, 3)}


def test_python_that_a_test_has_as_text_and_runs_itself_is_followed():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            SOURCE = "def work(number): return torch.ones(1, device=f'cuda:{number}')"

            @pytest.mark.parametrize("text", ["torch.ones(1, device='cuda:2')", "1", "count > 1 or pytest.skip('')"])
            def test_eval(text):
                count = torch.cuda.device_count()
                eval(text)

            def test_exec():
                names = {"torch": torch}
                exec(compile(SOURCE, "work.py", "exec"), names)
                names["work"](3)

            def test_no_python():
                with pytest.raises(SyntaxError):
                    exec("def (")
            """
        },
    )
    assert found == {
        "test_eval[torch.ones(1, device='cuda:2')]": (3, 3, 3),
        "test_eval[1]": (0, None, 0),
        "test_eval[count > 1 or pytest.skip('')]": (2, 2, 2),
        "test_exec": (4, 4, 4),
        "test_no_python": (0, None, 0),
    }


def test_a_mask_that_names_a_device_which_no_machine_has_hides_all_devices():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os, subprocess, sys
            import torch

            def test_hidden():
                text = "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '32'; import torch; torch.cuda.device_count()"
                assert subprocess.check_output([sys.executable, "-c", text]) == b""

            def test_named():
                text = "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '1'; import torch; torch.ones(1).cuda()"
                subprocess.check_output([sys.executable, "-c", text])

            def test_default_device_is_taken_back():
                torch.set_default_device(None)
            """
        },
    )
    assert found == {
        "test_hidden": (0, None, 0),
        "test_named": (2, 2, 2),
        "test_default_device_is_taken_back": (0, None, 0),
    }


def test_a_text_that_was_made_deep_is_not_run():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            def test_deep():
                text = "lambda a, b: " + "+".join(["a", "b"] * 256)
                assert eval(text)(1, 2) == 768
            """
        },
    )
    assert found == {"test_deep": (0, None, 0)}


def test_a_program_finds_the_variables_that_it_is_given():
    found = needs(
        """
        def test_given():
            program = "import os, torch; torch.cuda.set_device(int(os.environ['LOCAL_RANK']))"
            subprocess.run([sys.executable, "-c", program], env={**os.environ, "LOCAL_RANK": "2"}, check=True)
        """,
        """
        def test_copied():
            environment = os.environ.copy()
            environment["LAST"] = "3"
            program = "import os, torch; torch.ones(1, device='cuda:' + os.environ['LAST'])"
            subprocess.check_call([sys.executable, "-c", program], env=environment)
            assert "LAST" not in os.environ
        """,
    )
    assert {name: least for name, (least, _, _) in found.items()} == {"test_given": 3, "test_copied": 4}


def test_what_python_would_warn_of_in_a_text_is_not_our_affair(recwarn):
    found = needs(
        """
        def test_text():
            assert eval("1or 2") == 1
            torch.ones(1, device="cuda:1")
        """,
        """
        def test_program():
            text = "1or 2; import torch; torch.ones(1, device='cuda:3')"
            subprocess.run([sys.executable, "-c", text], check=True)
        """,
    )
    assert found == {"test_text": (2, 2, 2), "test_program": (4, 4, 4)}
    assert not list(recwarn)
