"""One file per way a GGUF header can lie: each is refused, naming the field, what was found and what was expected."""

import resource
import struct
import sys

import pytest

from codec_core.errors import ModelFormatError

from .gguf_bytes import Q8_0, STRING, U8, U32, GgufFile, Key, array, string, text, tiny_model, u32
from .refusal import Case, assert_refused, inspect, parametrize, refused

FIRST = "mimi.encoder.model.0.conv.conv.weight"
FIRST_FIELD = f"tensor '{FIRST}'"


def put(**changes: object):
    def change(file: GgufFile) -> None:
        for name, value in changes.items():
            setattr(file, name, value)

    return change


def put_first(**changes: object):
    def change(file: GgufFile) -> None:
        for name, value in changes.items():
            setattr(file.tensor(FIRST), name, value)

    return change


def add_key(key: Key):
    return lambda file: file.keys.insert(0, key)


PREAMBLE = [
    Case("magic", put(magic=b"GGUG"), "file", "bytes 'GGUG'", "'GGUF'"),
    Case("version 0", put(version=struct.pack("<I", 0)), "version", "0", "3"),
    Case("version 1", put(version=struct.pack("<I", 1)), "version", "1", "3"),
    Case("version 2", put(version=struct.pack("<I", 2)), "version", "2", "3"),
    Case("version 4", put(version=struct.pack("<I", 4)), "version", "4", "3"),
    Case("big-endian", put(version=struct.pack(">I", 3)), "version", "a big-endian file", "a little-endian GGUF file"),
    Case("huge tensor count", put(tensor_count=2**62), "tensor count", str(2**62), "at most 16384"),
    Case("negative tensor count", put(tensor_count=2**64 - 1), "tensor count", str(2**64 - 1), "at most 16384"),
    Case("huge key count", put(key_count=2**60), "key count", str(2**60), "at most 16384"),
    Case("negative key count", put(key_count=2**64 - 2), "key count", str(2**64 - 2), "at most 16384"),
]

KEYS = [
    Case("empty key", add_key(u32("", 1)), "key 0", "an empty key", "a name"),
    Case("key with NUL", add_key(u32("a\0b", 1)), "key 0", "a NUL byte at index 1", "text without NUL"),
    Case("key not UTF-8", add_key(Key(b"ab\xff", U32, bytes(4))), "key 0", "a byte that is not UTF-8 at index 2", "UTF-8 text"),
    Case(
        "key with a surrogate",
        add_key(Key(b"\xed\xa0\x80", U32, bytes(4))),
        "key 0",
        "a byte that is not UTF-8 at index 0",
        "UTF-8 text",
    ),
    Case(
        "key overlong UTF-8",
        add_key(Key(b"\xc0\xaf", U32, bytes(4))),
        "key 0",
        "a byte that is not UTF-8 at index 0",
        "UTF-8 text",
    ),
    Case("key too long", add_key(u32("k" * 65537, 1)), "key 0", "a length of 65537 bytes", "at most 65536"),
    Case("duplicate key", add_key(text("general.name", "again")), "key 'general.name'", "a second value", "every key once"),
    Case("unknown value type", add_key(Key("a", 13, bytes(4))), "key 'a' type", "13", "a value type from 0 to 12"),
    Case(
        "negative value type",
        add_key(Key("a", 2**32 - 1, bytes(4))),
        "key 'a' type",
        str(2**32 - 1),
        "a value type from 0 to 12",
    ),
    Case("bool of 2", add_key(Key("a", 7, b"\2")), "key 'a'", "a bool of 2", "0 or 1"),
    Case(
        "value string too long",
        add_key(text("a", "v" * (2**20 + 1))),
        "key 'a'",
        "a length of 1048577 bytes",
        "at most 1048576",
    ),
    Case(
        "value string length wraps",
        add_key(Key("a", STRING, string("v", 2**64 - 1))),
        "key 'a'",
        f"a length of {2**64 - 1} bytes",
        "at most 1048576",
    ),
    Case(
        "value not UTF-8", add_key(text("a", b"\xe2\x28\xa1")), "key 'a'", "a byte that is not UTF-8 at index 0", "UTF-8 text"
    ),
    Case(
        "nested array",
        add_key(array("a", 9, 1, array("", U8, 1, b"x").payload)),
        "key 'a' element type",
        "array",
        "no arrays of arrays",
    ),
    Case("unknown element type", add_key(array("a", 77, 1, b"")), "key 'a' element type", "77", "a value type from 0 to 12"),
    Case("array count wraps", add_key(array("a", U32, 2**62, b"")), "key 'a' count", str(2**62), "at most 16777216"),
    Case(
        "string in array not UTF-8",
        add_key(array("a", STRING, 1, string(b"\x80"))),
        "key 'a'",
        "a byte that is not UTF-8 at index 0",
        "UTF-8 text",
    ),
    Case("alignment 0", add_key(u32("general.alignment", 0)), "key 'general.alignment'", "0", "a power of two from 8 to 65536"),
    Case(
        "alignment 24", add_key(u32("general.alignment", 24)), "key 'general.alignment'", "24", "a power of two from 8 to 65536"
    ),
    Case(
        "alignment huge",
        add_key(u32("general.alignment", 2**31)),
        "key 'general.alignment'",
        str(2**31),
        "a power of two from 8 to 65536",
    ),
    Case("alignment a string", add_key(text("general.alignment", "32")), "key 'general.alignment'", "string", "u32"),
]

TENSORS = [
    Case("duplicate tensor", lambda file: file.tensors.append(file.tensors[0]), FIRST_FIELD, "a second one", "every name once"),
    Case("empty name", put_first(name=""), "tensor 0 name", "an empty name", "a name"),
    Case("name with NUL", put_first(name="mimi\0"), "tensor 0 name", "a NUL byte at index 4", "text without NUL"),
    Case("name not UTF-8", put_first(name=b"\xfe"), "tensor 0 name", "a byte that is not UTF-8 at index 0", "UTF-8 text"),
    Case("name too long", put_first(name="n" * 256), "tensor 0 name", "a length of 256 bytes", "at most 255"),
    Case("rank 0", put_first(rank=0), f"{FIRST_FIELD} rank", "0", "1 to 4"),
    Case("rank 5", put_first(rank=5), f"{FIRST_FIELD} rank", "5", "1 to 4"),
    Case("rank huge", put_first(rank=2**31), f"{FIRST_FIELD} rank", str(2**31), "1 to 4"),
    Case("zero dim", put_first(dims=(7, 0, 4)), f"{FIRST_FIELD} dims", "0", "at least 1"),
    Case("negative dim", put_first(dims=(7, -1, 4)), f"{FIRST_FIELD} dims", "-1", "at least 1"),
    Case(
        "product overflows",
        put_first(dims=(2**40, 2**40)),
        f"{FIRST_FIELD} dims",
        f"{2**40} times {2**40}",
        "a size below 2^63",
    ),
    Case(
        "product wraps to small",
        put_first(dims=(2**32, 2**31, 2, 1)),
        f"{FIRST_FIELD} dims",
        f"{2**32} times {2**31}",
        "a size below 2^63",
    ),
    Case("bytes overflow", put_first(dims=(2**62,)), f"{FIRST_FIELD} dims", f"{2**62} times 4", "a size below 2^63"),
    Case(
        "block bytes overflow",
        put_first(dims=(2**63 - 32,), type=Q8_0),
        f"{FIRST_FIELD} dims",
        f"{2**58 - 1} times 34",
        "a size below 2^63",
    ),
    Case(
        "q8_0 row",
        put_first(dims=(33, 2), type=Q8_0),
        f"{FIRST_FIELD} dims",
        "rows of 33 elements",
        "a multiple of 32 for q8_0",
    ),
    Case("unknown type", put_first(type=200), f"{FIRST_FIELD} type", "type id 200", "a type this reader knows"),
    Case("removed type", put_first(type=4), f"{FIRST_FIELD} type", "type id 4", "a type this reader knows"),
    Case("negative type", put_first(type=-1), f"{FIRST_FIELD} type", f"type id {2**32 - 1}", "a type this reader knows"),
]


@parametrize(PREAMBLE)
def test_preamble_that_lies(tmp_path, case):
    assert_refused(tmp_path, tiny_model(), case, ModelFormatError)


@parametrize(KEYS)
def test_metadata_that_lies(tmp_path, case):
    assert_refused(tmp_path, tiny_model(), case, ModelFormatError)


@parametrize(TENSORS)
def test_tensor_record_that_lies(tmp_path, case):
    assert_refused(tmp_path, tiny_model(), case, ModelFormatError)


def test_count_that_fits_its_cap_but_not_the_file(tmp_path):
    error = refused(tmp_path, GgufFile(key_count=16384), ModelFormatError)
    assert (error.subject, error.found, error.expected) == ("key count", "16384", "at most the 0 that fit the file")
    error = refused(tmp_path, GgufFile(tensor_count=2, trailing=bytes(40)), ModelFormatError)
    assert (error.subject, error.found, error.expected) == ("tensor count", "2", "at most the 1 that fit the file")


def test_array_longer_than_the_file(tmp_path):
    file = GgufFile(keys=[array("a", U32, 100, bytes(399))])
    error = refused(tmp_path, b"".join(part for name, part in file.sections() if name != "padding"), ModelFormatError)
    assert (error.subject, error.found, error.expected) == ("key 'a' count", "100", "at most the 99 that fit the file")


def test_string_longer_than_the_file(tmp_path):
    file = GgufFile(keys=[Key("a", STRING, string("v", 1000))], alignment=1)
    error = refused(tmp_path, file, ModelFormatError)
    assert (error.subject, error.found, error.expected) == (
        "key 'a'",
        "the end of the file at byte 46",
        "1000 bytes from byte 45",
    )


def test_hostile_text_is_shown_harmless(tmp_path):
    error = refused(tmp_path, GgufFile(keys=[Key("a\n\x1b[2J\u00e9" + "x" * 200, 99, b"")]), ModelFormatError)
    assert error.subject == r"key 'a\x0a\x1b[2J\xc3\xa9" + "x" * 92 + "...' type"


def test_metadata_values_come_back_as_they_are(tmp_path):
    file = tiny_model()
    file.keys += [
        Key("a.i8", 1, struct.pack("<b", -5)),
        Key("a.u64", 10, struct.pack("<Q", 2**64 - 1)),
        Key("a.i64", 11, struct.pack("<q", -(2**63))),
        Key("a.f64", 12, struct.pack("<d", 0.1)),
        Key("a.bool", 7, b"\1"),
        text("a.text", "h\u00e9llo"),
        array("a.tokens", STRING, 3, string("x") + string("") + string("yz")),
        array("a.scores", 6, 2, bytes(8)),
    ]
    metadata = inspect(tmp_path, file)["metadata"]
    assert metadata["a.i8"] == -5
    assert metadata["a.u64"] == 2**64 - 1
    assert metadata["a.i64"] == -(2**63)
    assert metadata["a.f64"] == 0.1
    assert metadata["a.bool"] is True
    assert metadata["a.text"] == "h\u00e9llo"
    assert metadata["a.tokens"] == {"element_type": "string", "count": 3}
    assert metadata["a.scores"] == {"element_type": "f32", "count": 2}


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
def test_claims_larger_than_the_file_allocate_nothing(tmp_path):
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for change in (put(tensor_count=16384), put_first(dims=(2**50,)), add_key(array("a", STRING, 2**24, b""))):
        file = tiny_model()
        change(file)
        refused(tmp_path, file, ModelFormatError)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 32 * 1024
