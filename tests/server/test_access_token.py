from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.access_token import SCOPES, TokenClaims, check_scope, read_token, sign_token
from server.errors import TokenExpiredError, TokenScopeError, UnauthorizedError
from server.shared_secret import SharedSecret

KEY = SharedSecret("a secret of the tests").key("access token")
CLAIMS = TokenClaims(("stream", "info"), 5_000, "0123456789abcdef")
TOKEN = sign_token(CLAIMS, KEY)


def test_a_token_says_what_was_signed_until_it_expires():
    assert read_token(TOKEN, KEY, 4_999) == CLAIMS
    for now_ms in (5_000, 9_000):
        with pytest.raises(TokenExpiredError, match=f"found one that expired {now_ms - 5_000} ms ago"):
            read_token(TOKEN, KEY, now_ms)


def test_a_token_needs_no_escaping_in_an_address():
    assert all(character.isalnum() or character in "-_." for character in TOKEN)


@pytest.mark.parametrize("place", range(len(TOKEN)))
def test_no_character_can_be_changed(place):
    for other in "A.z":
        if other == TOKEN[place]:
            continue
        try:
            claims = read_token(TOKEN[:place] + other + TOKEN[place + 1 :], KEY, 0)
        except UnauthorizedError:
            continue
        # The last character of base64 has bits that mean nothing.
        assert (place, claims) == (len(TOKEN) - 1, CLAIMS)


@given(st.text(max_size=200))
def test_no_text_passes(text):
    for token in (text, TOKEN + text[:1] + "x", f"1.{text}.{text}", "1." + base64.b64encode(text.encode()).decode() + "."):
        with pytest.raises(UnauthorizedError):
            read_token(token, KEY, 0)


@pytest.mark.parametrize("token", ["", ".", "..", "1..", "\ud800.x.y", "1." + "A" * 5000 + ".AAAA", "2" + TOKEN[1:]])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(UnauthorizedError):
        read_token(token, KEY, 0)


def test_another_secret_or_purpose_is_another_signature():
    for key in (SharedSecret("a secret of others").key("access token"), SharedSecret("a secret of the tests").key("snapshot")):
        with pytest.raises(UnauthorizedError):
            read_token(TOKEN, key, 0)


@pytest.mark.parametrize(("scope", "paths"), SCOPES.items())
def test_a_scope_opens_its_own_paths_only(scope, paths):
    everything = {path for each in SCOPES.values() for path in each} | {"/v1/token", "/metrics"}
    claims = TokenClaims((scope,), 1, "")
    for path in everything:
        if path in paths:
            check_scope(claims, path)
        else:
            with pytest.raises(TokenScopeError, match=f"found scope {scope}, expected "):
                check_scope(claims, path)
    with pytest.raises(TokenScopeError):
        check_scope(TokenClaims(("a scope of later versions",), 1, ""), paths[0])
