from __future__ import annotations

import hashlib

import pytest

from codec_core.errors import SettingError
from server.api_keys import ApiKeys, read_keys
from server.errors import UnauthorizedError
from server.settings import Settings


def header(key: str) -> list[tuple[bytes, bytes]]:
    return [(b"x-api-key", key.encode())]


def test_keys_of_setting_and_file_are_one_set(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"# of the team\n\n  second \nsha256:{hashlib.sha256(b'third').hexdigest()}\n")
    keys = read_keys(Settings(api_keys="first", api_keys_file=str(file)))
    names = {keys.check(header(key)) for key in ("first", "second", "third")}
    assert len(names) == 3
    assert all(keys.knows(name) for name in names)
    for wrong in ("", "# of the team", "sha256:" + hashlib.sha256(b"third").hexdigest(), "fourth"):
        with pytest.raises(UnauthorizedError):
            keys.check(header(wrong))


def test_a_digest_of_another_spelling_is_a_plain_key():
    assert ApiKeys(["sha256:abc"]).check(header("sha256:abc"))


def test_a_name_tells_nothing_and_goes_with_its_key():
    keys = ApiKeys(["secret-key"])
    name = keys.check(header("secret-key"))
    assert name not in (hashlib.sha256(b"secret-key").hexdigest(), "secret-key")
    assert not ApiKeys(["another"]).knows(name)
    assert not keys.knows("")


@pytest.mark.parametrize(
    ("content", "found"),
    [(None, "No such file or directory"), (b"", "no key in"), (b"# none\n \n", "no key in"), (b"\xff", "not UTF-8")],
)
def test_a_file_that_would_leave_the_service_open_is_refused(tmp_path, content, found):
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingError, match=r"^api_keys_file: found ") as refusal:
        read_keys(Settings(api_keys="first", api_keys_file=str(file)))
    assert found in str(refusal.value)


def test_a_set_without_keys_is_false():
    assert not read_keys(Settings())
    assert read_keys(Settings(api_keys="one"))
