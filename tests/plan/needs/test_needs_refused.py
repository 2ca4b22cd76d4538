"""What Python itself refuses: an item behind the end, a text that is not there; and bases that are in a list."""

from small_projects import devices_of


def test_what_python_refuses_of_known_things_is_caught_by_the_test():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            def use(count):
                for index in range(count):
                    torch.ones(1, device=f"cuda:{index}")

            def test_an_item_is_set_behind_the_end():
                rows = [1]
                try:
                    rows[5] = 3
                except IndexError:
                    use(2)

            def test_an_item_is_deleted_behind_the_end():
                rows = [1]
                with pytest.raises(IndexError):
                    del rows[5]
                use(3)

            def test_a_text_is_not_there():
                try:
                    "abc".index("d")
                except ValueError:
                    use(2)

            def test_a_number_is_not_there():
                try:
                    [1, 2].remove(3)
                except ValueError:
                    use(4)
                else:
                    use(1)

            def test_a_tensor_may_be_there():
                rows = [torch.ones(1), torch.zeros(1)]
                rows.remove(torch.ones(1))
                use(2)
            """
        },
    )
    assert found == {
        "test_an_item_is_set_behind_the_end": (2, 2, 2),
        "test_an_item_is_deleted_behind_the_end": (3, 3, 3),
        "test_a_text_is_not_there": (2, 2, 2),
        "test_a_number_is_not_there": (4, 4, 4),
        "test_a_tensor_may_be_there": (2, 2, 2),
    }


def test_a_list_that_grows_nobody_knows_how_often_refuses_no_item():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import acme
            import torch

            def test_a_row_of_many():
                rows = []
                for each in acme.rows():
                    rows.append(each)
                rows[3] = 1
                torch.ones(1, device="cuda:1")
            """
        },
    )
    assert found == {"test_a_row_of_many": (2, 2, 2)}


def test_a_class_inherits_from_those_in_a_list():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            class Two:
                count = 2

            BASES = [Two]

            class Made(*BASES):
                pass

            def test_it():
                torch.ones(1, device=f"cuda:{Made.count - 1}")
            """
        },
    )
    assert found == {"test_it": (2, 2, 2)}
