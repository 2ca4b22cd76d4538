import sys

import pytest

from sooner.warm import pages


@pytest.mark.skipif(sys.platform != "linux", reason="madvise of Linux")
def test_memory_keeps_its_contents_in_huge_pages():
    block = bytearray(b"kept" * (2 << 20))
    assert pages.collapse() >= 0
    assert block[:4] == block[-4:] == b"kept"


def test_mappings_are_those_that_are_private_and_of_no_file():
    assert all(end > start for start, end in pages._private_memory())
