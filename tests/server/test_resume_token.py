from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.errors import ResumeRefusedError
from server.resume_token import ResumeToken, TokenIssuer, read_token, sign_token
from server.shared_secret import SharedSecret

KEY = SharedSecret("a secret of some length").key("resume token")
TOKEN = ResumeToken("00112233445566778899aabbccddeeff", 7, 2_000_000_000, "ab" * 32, "kyutai")
NOW_S = 1_900_000_000


def test_what_is_signed_is_read():
    text = sign_token(TOKEN, KEY)
    assert read_token(text, KEY, NOW_S) == TOKEN
    assert text.replace("-", "").replace("_", "").isalnum()


def test_the_key_is_made_for_one_purpose():
    first, second = SharedSecret("s" * 16), SharedSecret("t" * 16)
    assert len({first.key("a"), first.key("b"), second.key("a")}) == 3
    with pytest.raises(ResumeRefusedError, match="signature"):
        read_token(sign_token(TOKEN, SharedSecret("a secret of some length").key("stream snapshot")), KEY, NOW_S)


@pytest.mark.parametrize("now_s", [2_000_000_000, 2e9 + 0.5, 3e9])
def test_its_time_runs_out(now_s):
    with pytest.raises(ResumeRefusedError, match="expired"):
        read_token(sign_token(TOKEN, KEY), KEY, now_s)


def test_every_changed_bit_shows():
    text = sign_token(TOKEN, KEY)
    data = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    for place in range(8 * len(data)):
        data[place // 8] ^= 1 << place % 8
        with pytest.raises(ResumeRefusedError):
            read_token(base64.urlsafe_b64encode(data).decode().rstrip("="), KEY, NOW_S)
        data[place // 8] ^= 1 << place % 8


@given(st.text(max_size=300) | st.binary(max_size=200).map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_whatever_comes_it_is_refused_by_name(text):
    with pytest.raises(ResumeRefusedError):
        read_token(text, KEY, NOW_S)


@pytest.mark.parametrize("other", [("cd" * 32, "kyutai"), ("ab" * 32, "ggml")])
def test_another_model_or_numerics_is_refused(other):
    ours = TokenIssuer(SharedSecret("a secret of some length"), "ab" * 32, "kyutai", 100.0)
    theirs = TokenIssuer(SharedSecret("a secret of some length"), *other, 100.0)
    text = theirs.issue(TOKEN.stream_id, 3, 2e9)
    assert theirs.read(text).generation == 3
    with pytest.raises(ResumeRefusedError, match="numerics"):
        ours.read(text)


def test_without_a_secret_no_other_process_can_read_it():
    first, second = (TokenIssuer(SharedSecret(""), "ab" * 32, "kyutai", 100.0) for _ in range(2))
    text = first.issue(TOKEN.stream_id, 0, 2e9)
    assert first.read(text).expires_unix_s == 2_000_000_101
    assert first.snapshot_key != second.snapshot_key
    with pytest.raises(ResumeRefusedError):
        second.read(text)
