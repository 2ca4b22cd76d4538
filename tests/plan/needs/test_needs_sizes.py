"""What `bench/needs_against_pytest.py --grammar sizes` found: numbers that settings, tables and iterators give."""

import textwrap

import pytest
from small_projects import needs_of

HEAD = """
import ast, base64, bisect, collections, csv, functools, heapq, io, itertools, json, math, operator, pathlib, re
import statistics, struct, types, torch
from dataclasses import dataclass

def use_all(n):
    for i in range(n):
        torch.ones(1, device=f"cuda:{i}")
"""


def said_of(size):
    body = textwrap.indent(textwrap.dedent(size).strip(), "    ")
    found = needs_of("test_it.py", {"test_it.py": f"{HEAD}\ndef test_it():\n{body}\n    use_all(n)\n"})
    return found["test_it"].min, found["test_it"].confidence


@pytest.mark.parametrize(
    "size",
    [
        "sizes = collections.OrderedDict(a=1, b=4)\nsizes.move_to_end('a')\nn = next(iter(sizes.values()))",
        "n = collections.Counter('aaaab').most_common(1)[0][1]",
        "n = collections.Counter('aabb').total()",
        "n = collections.ChainMap({'tp': 1}, {'tp': 8, 'world': 4})['world']",
        "n = types.MappingProxyType({'world': 4})['world']",
        "n = json.loads(json.dumps({'world': 4}))['world']",
        "n = ast.literal_eval('[1, 4]')[1]",
        "n = math.comb(4, 1)",
        "n = int(statistics.median([1, 4, 8]))",
        "n = struct.unpack('i', struct.pack('i', 4))[0]",
        "n = int(base64.b64decode(base64.b64encode(b'4')))",
        "n = int.from_bytes((4).to_bytes(2, 'big'), 'big')",
        "n = int(str.join('', ['4']))",
        "n = int([*map(str.strip, [' 4 '])][0])",
        "n = len(dict.fromkeys('abcd', 1))",
        "heap = [4, 9, 10]\nheapq.heapify(heap)\nn = heapq.heappop(heap)",
        "n = heapq.nlargest(1, [1, 4])[0]",
        "n = bisect.bisect_right([0, 1, 2, 3], 100)",
        "n = operator.attrgetter('a.b')(types.SimpleNamespace(a=types.SimpleNamespace(b=4)))",
        "n = len(list(itertools.islice(itertools.count(), 4)))",
        "n = len(list(itertools.takewhile(lambda i: i < 4, itertools.count())))",
        "n = len(list(zip(range(4), itertools.cycle('ab'))))",
        "sizes = itertools.cycle([1, 4])\nnext(sizes)\nn = next(sizes)",
        "n = max(len(list(group)) for _, group in itertools.groupby('aaaa'))",
        "n = list(itertools.compress([1, 4], [0, 1]))[0]",
        "_, second = itertools.tee(range(4))\nn = len(list(second))",
        "n = int(pathlib.Path('tp.4').suffix[1:])",
        "n = int(next(csv.reader(io.StringIO('1,4')))[1])",
        "n = int(list(csv.DictReader(io.StringIO('tp,pp\\n1,4')))[0]['pp'])",
        "n = max(int(line) for line in io.StringIO('1\\n4\\n'))",
        "n = int(re.match(r'(?P<kind>\\w+):(?P<n>\\d+)', 'gpu:4')['n'])",
        "n = int.__mul__(4, 1)",
        "n = 4 if issubclass(bool, int) and not issubclass(int, str) else 1",
        "def sized(tp=4):\n    return tp\nn = sized.__defaults__[0]",
        "def sized(*, tp=4):\n    return tp\nn = sized.__kwdefaults__['tp']",
        """
        class Size:
            def __init__(self, n):
                self.n = n

            def __lt__(self, other):
                return self.n < other.n

        n = sorted([Size(4), Size(1)])[-1].n
        """,
        """
        @dataclass(order=True)
        class Size:
            n: int

        n = max([Size(1), Size(4), Size(1)]).n
        """,
        """
        class Meta(type):
            def __getitem__(cls, n):
                return type(f"Layout{n}", (cls,), {"n": n})

        class Layout(metaclass=Meta):
            n = 1

        n = Layout[4].n
        """,
        """
        class Layout:
            def __class_getitem__(cls, n):
                return n

        n = Layout[4]
        """,
    ],
)
def test_a_size_is_known_by_whatever_the_standard_library_makes_it(size):
    assert said_of(size) == (4, "high")


@pytest.mark.parametrize("size", ["acme.sized() or 4", "acme.sized() and 4 or 1", "acme.sized() == () and 1 or 4"])
def test_one_of_two_sizes_is_no_number_of_its_own(size):
    found = needs_of("test_it.py", {"test_it.py": f"{HEAD}\nimport acme\n\ndef test_it():\n    use_all({size})\n"})
    assert found["test_it"].confidence == "medium"


def test_what_is_taken_by_default_is_a_condition_that_holds():
    found = needs_of(
        "test_it.py",
        {"test_it.py": f"{HEAD}\nimport acme\n\ndef test_it():\n    use_all(4 if acme.sized() or 2 else 1)\n"},
    )
    assert (found["test_it"].min, found["test_it"].confidence) == (4, "high")


def test_conftests_name_cases():
    found = needs_of(
        "test_it.py",
        {
            "conftest.py": """
            def pytest_make_parametrize_id(config, val, argname):
                return f"{argname}={val}" if isinstance(val, int) else None
            """,
            "test_it.py": HEAD
            + """
import pytest

@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("kind", ["a"])
def test_it(n, kind):
    use_all(n)
""",
        },
    )
    assert {name: each.min for name, each in found.items()} == {"test_it[a-n=1]": 1, "test_it[a-n=4]": 4}


@pytest.mark.parametrize(
    "size",
    [
        "n = len(operator.mul('a', 10**12))",
        "n = len(struct.pack('9999999999s', b''))",
        "n = len(json.dumps([1], indent=10**10))",
        "n = math.comb(10**7, 5 * 10**6)",
        "n = len(bytes(10**11))",
        "n = len(list(collections.Counter(a=10**10).elements()))",
        "n = len(list(itertools.product([1], repeat=10**10)))",
        "n = len(list(itertools.islice(itertools.count(), 10**12, 10**13)))",
        "n = len(list(itertools.takewhile(lambda each: True, itertools.repeat(1))))",
    ],
)
def test_what_would_fill_the_memory_or_take_for_ever_is_not_known(size):
    assert said_of(size)[1] != "high"
