"""Keys: every form in which many of them are given has the answers of single ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidebloom import Filter

TEXT = ["ada", "grace", "barbara", "", "Zoë", "名前", "with\x00nul", "x" * 300]
INTS = [0, 1, -1, 5, 127, 255, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
FILTER = Filter.build([*TEXT, *INTS], fpp=0.0001)


def assert_same(array: Any, keys: list[Any]) -> None:
    """The keys of an array are these."""
    expected = [key in FILTER for key in keys]
    answers = FILTER.contains_many(array)
    assert answers.dtype == np.bool_ and answers.tolist() == expected
    built = Filter.build(array, fpp=0.0001)
    assert all(key in built for key in keys)


def test_text_in_all_forms() -> None:
    asked = TEXT + [f"{text}?" for text in TEXT]
    data = [text.encode() for text in asked]
    forms: list[Any] = [asked, data, tuple(asked), set(data), dict.fromkeys(asked)]
    for keys in forms:
        assert_same(keys, list(keys))
    assert FILTER.contains_many(t for t in asked).tolist() == [t in FILTER for t in asked]
    assert FILTER.contains_many([bytearray(b"ada"), memoryview(b"grace"), np.str_("ada"), np.bytes_(b"no")]).tolist() == [
        True,
        True,
        True,
        False,
    ]
    for kind in [pa.string(), pa.large_string(), pa.string_view()]:
        assert_same(pa.array(asked, kind), asked)
        assert_same(pa.chunked_array([asked[:3], [], asked[3:]], kind), asked)
        assert_same(pa.array(asked, kind)[2:7], asked[2:7])
    for kind in [pa.binary(), pa.large_binary(), pa.binary_view()]:
        assert_same(pa.array(data, kind), asked)
        assert_same(pa.array(data, kind)[3:], asked[3:])
    assert_same(pa.array([b"ada", b"abc"], pa.binary(3)), ["ada", "abc"])
    assert_same(pl.Series(asked), asked)
    assert_same(pl.Series(data), asked)
    assert_same(pl.Series(asked)[2:6], asked[2:6])
    assert_same(pa.table({"names": asked})["names"], asked)
    # numpy pads with NUL, so that keys must not end in one.
    assert_same(np.array(asked), asked)
    assert_same(np.array(data), asked)
    assert_same(np.array(asked)[::3], asked[::3])
    assert_same(np.array(data)[::-1], asked[::-1])
    assert_same(np.array(asked, dtype=object), asked)
    assert_same(np.array(asked, dtype=np.dtypes.StringDType()), asked)


def test_integers_in_all_forms() -> None:
    for dtype in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]:
        info = np.iinfo(dtype)
        fitting = [n for n in [*INTS, 7, 200] if info.min <= n <= info.max]
        array = np.array(fitting, dtype)
        if array.itemsize > 1:
            assert_same(array, fitting)
            assert_same(np.repeat(array, 3)[1::3], fitting)
        assert_same(pa.array(array), fitting)
        assert_same(pa.array(array)[1:], fitting[1:])
        assert_same(pl.Series(array), fitting)
        assert_same(list(array), fitting)
    assert_same(range(-5, 20), list(range(-5, 20)))
    # Above the signed numbers, the bytes are those of the unsigned ones.
    assert_same(np.array([2**64 - 1, 2**63], "u8"), [2**64 - 1, 2**63])


def test_rows_of_bytes() -> None:
    rows = np.frombuffer(b"adagraada???", dtype="u1").reshape(4, 3)
    assert_same(rows, ["ada", "gra", "ada", "???"])
    assert_same(rows[::-2], ["???", "gra"])
    assert_same(memoryview(b"adagra").cast("B", (2, 3)), ["ada", "gra"])
    assert FILTER.contains_many(np.zeros((3, 0), "u1")).tolist() == [True] * 3  # the empty key
    with pytest.raises(TypeError, match="contiguous"):
        FILTER.contains_many(rows[:, ::2])


def test_no_keys_give_no_answers() -> None:
    for keys in [[], (), np.array([], "i8"), np.array([], "U3"), pa.array([], pa.string()), pl.Series([], dtype=pl.String), iter([])]:
        assert FILTER.contains_many(keys).tolist() == []


@pytest.mark.parametrize(
    "keys",
    [
        "text",
        b"bytes",
        bytearray(b"bytes"),
        memoryview(b"bytes"),
        5,
        None,
        1.5,
        [1.5],
        [None],
        [True],
        ["a", ["b"]],
        np.zeros(3),
        np.zeros(3, dtype=bool),
        np.zeros(3, dtype=complex),
        np.zeros((2, 2), dtype="i8"),
        np.zeros((2, 2, 2), dtype="u1"),
        np.array(5),
        np.zeros(3, dtype="u1"),
        np.zeros(3, dtype=">i8"),
        np.zeros(3, dtype=[("a", "i4"), ("b", "i4")]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.array([None, 1.5], dtype=object),
        pa.array([1.5]),
        pa.array([True]),
        pa.array([["a"]]),
        pa.array(["a"]).dictionary_encode(),
        pl.Series([1.5]),
        pa.table({"a": ["b"]}),
        pl.DataFrame({"a": ["b"]}),
        object(),
    ],
    ids=repr,
)
def test_what_has_no_keys_is_a_type_error(keys: Any) -> None:
    with pytest.raises(TypeError):
        FILTER.contains_many(keys)
    with pytest.raises(TypeError):
        Filter.build(keys if not isinstance(keys, str) else [keys.split])  # type: ignore[list-item]


def test_nulls_and_broken_text_are_value_errors() -> None:
    for keys in [pa.array(["a", None]), pl.Series(["a", None]), pl.Series([1, None])]:
        with pytest.raises(ValueError, match="null"):
            FILTER.contains_many(keys)
    with pytest.raises(ValueError):
        FILTER.contains_many(["\ud800"])
    with pytest.raises(ValueError):
        FILTER.contains_many(np.array(["\ud800"]))
    with pytest.raises(OverflowError):
        FILTER.contains_many([2**64])
    with pytest.raises(OverflowError):
        FILTER.contains_many([-(2**63) - 1])


def test_what_an_iterable_raises_comes_through() -> None:
    def keys() -> Any:
        yield "ada"
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        FILTER.contains_many(keys())


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.binary(max_size=40) | st.text(max_size=20) | st.integers(-(2**63), 2**64 - 1)))
def test_a_filter_has_all_of_its_keys(keys: list[Any]) -> None:
    f = Filter.build(keys, fpp=0.001)
    assert f.contains_many(keys).all() and all(key in f for key in keys)


def test_arrow_arrays_that_lie_are_value_errors() -> None:
    class Exported:
        """Exports a schema and an array that need not fit."""

        def __init__(self, schema: Any, array: Any) -> None:
            self.capsules = (schema.__arrow_c_array__()[0], array.__arrow_c_array__()[1])

        def __arrow_c_array__(self, requested_schema: object | None = None) -> Any:
            return self.capsules

    offsets = pa.py_buffer(np.array([0, 3, 1], "i4").tobytes())
    with pytest.raises(ValueError):
        FILTER.contains_many(pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcd")]))
    with pytest.raises(ValueError):
        FILTER.contains_many(Exported(pa.array(["a"]), pa.array([1])))
    once = Exported(pa.array(["ada"]), pa.array(["ada"]))
    assert FILTER.contains_many(once).tolist() == [True]
    with pytest.raises(ValueError, match="read before"):
        FILTER.contains_many(once)


def test_what_asks_an_object_raises_comes_through() -> None:
    class Odd:
        def __index__(self) -> int:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Odd() in FILTER
    wrong: list[Any] = [int, np.array([b"a"])]
    for key in wrong:
        with pytest.raises(TypeError):
            key in FILTER


def test_arrays_of_objects_and_masks() -> None:
    f = Filter.build(pl.Series(["a", "b"], dtype=pl.Object))
    assert "a" in f and "b" in f and len(f) == 2
    with pytest.raises(TypeError, match="mask"):
        FILTER.contains_many(np.ma.array([5, 5], mask=[True, False]))
    assert FILTER.contains_many(pa.array([])).tolist() == [] == FILTER.contains_many(pl.Series([])).tolist()
