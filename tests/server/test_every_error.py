"""Every code of the one table: where a test provokes it, and that an application answers it as the table says."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import httpx
import pytest

from codec_core.errors import CodecError, error_classes
from server.app import create_app
from server.settings import Settings
from server.status_map import STATUS_MAP, error_fields

TESTS = Path(__file__).parents[1]
BRANCHES = {code for code, cls in error_classes().items() if cls.__subclasses__()}
"""Roots of branches, which are never raised themselves."""

REST, FLOW, EXAMPLES = "e2e/test_service_rest.py", "e2e/test_service_rest_flow.py", "e2e/test_service_openapi.py"
STREAM, LIMITS, TOKENS = "e2e/test_service_hostile.py", "e2e/test_service_limits.py", "e2e/test_service_tokens.py"
BOUNDS, RESUME, NO_RESUME = "e2e/test_service_bounds.py", "e2e/test_service_resume.py", "e2e/test_service_resume_refused.py"
SNAPSHOTS = "e2e/test_service_snapshots.py"
SESSION, MODEL, CONVERT = "codec_core/test_session.py", "codec_core/test_model.py", "codec_core/convert/test_converter.py"
PROVOKED_BY = {
    "model_access": (MODEL, "test_a_missing_file_is_named"),
    "model_format": (MODEL, "test_a_file_that_is_no_gguf_is_refused"),
    "model_contract": (CONVERT, "test_a_value_past_f16_leaves_no_file"),
    "input_shape": (SESSION, "test_encode_takes_exactly_one_frame"),
    "input_type": (SESSION, "test_pcm_of_another_type_is_refused_by_name"),
    "non_finite_input": (STREAM, "test_refused_by_name"),
    "code_range": (STREAM, "test_refused_by_name"),
    "setting": (STREAM, "test_refused_by_name"),
    "numeric_overflow": (STREAM, "test_refused_by_name"),
    "snapshot": ("codec_core/test_snapshot.py", "test_any_flipped_bit_is_refused"),
    "audio_file": (REST, "test_refused_by_name"),
    "codes_file": (REST, "test_refused_by_name"),
    "opus_data": ("e2e/test_service_opus.py", "test_hostile_bytes_end_their_own_stream_only"),
    "checkpoint": (CONVERT, "test_what_is_no_checkpoint_at_all"),
    "output_exists": ("codec_core/test_atomic_file.py", "test_an_existing_file_is_refused_before_any_work"),
    "session_busy": ("codec_core/test_session_threads.py", "test_a_second_thread_is_refused_and_the_first_goes_on"),
    "session_closed": (SESSION, "test_a_closed_session_refuses_every_call"),
    "unavailable": ("codec_core/test_session_threads.py", "test_threads_that_the_system_does_not_grant_are_refused"),
    "internal": ("server/test_every_error.py", "test_what_is_no_error_of_ours_is_internal_and_hides_its_text"),
    "capacity": (LIMITS, "test_one_too_many_is_told_so_and_when_to_come_back"),
    "address_capacity": (BOUNDS, "test_each_address_has_its_share_and_only_a_trusted_proxy_says_which"),
    "handshake_rate": (BOUNDS, "test_handshakes_come_no_faster_than_they_may"),
    "connections": ("e2e/test_service_connections.py", "test_connections_are_limited_and_told_so"),
    "address_connections": ("e2e/test_service_connections.py", "test_an_address_has_its_share_of_connections"),
    "overloaded": (BOUNDS, "test_a_service_at_its_limit_refuses_by_name_and_says_that_it_is_not_ready"),
    "resume_refused": (NO_RESUME, "test_forged_tokens_are_refused"),
    "resume_lost": (NO_RESUME, "test_what_is_no_longer_held_is_refused_by_name"),
    "taken_over": (RESUME, "test_a_second_connection_takes_a_half_open_one_over"),
    "snapshot_store": (SNAPSHOTS, "test_hostile_snapshots_are_refused"),
    "request_timeout": (BOUNDS, "test_who_says_nothing_or_only_half_of_it_is_hung_up_on"),
    "draining": (LIMITS, "test_sigterm_closes_those_that_stay"),
    "unauthorized": ("e2e/test_service_keys.py", "test_requests"),
    "token_expired": (EXAMPLES, "test_refusals_of_a_service_with_keys"),
    "token_scope": (TOKENS, "test_a_token_gets_no_token"),
    "forbidden_origin": (STREAM, "test_pages_of_other_origins_are_refused_before_the_handshake"),
    "protocol": (STREAM, "test_refused_by_name"),
    "wrong_kind": (STREAM, "test_refused_by_name"),
    "payload": (STREAM, "test_refused_by_name"),
    "message_too_big": (STREAM, "test_refused_by_name"),
    "message_flood": (STREAM, "test_a_flood_of_empty_fragments_is_refused"),
    "control_rate": (STREAM, "test_too_many_control_messages_are_refused"),
    "not_offered": (REST, "test_refused_by_name"),
    "hello_timeout": (LIMITS, "test_silence_ends"),
    "idle_timeout": (LIMITS, "test_silence_ends"),
    "session_timeout": (LIMITS, "test_a_stream_has_a_longest_time"),
    "too_slow": (LIMITS, "test_a_reader_that_does_not_read_is_closed_and_hurts_nobody"),
    "body_timeout": (REST, "test_caps_on_bodies_clips_and_conversions"),
    "body_too_large": (REST, "test_caps_on_bodies_clips_and_conversions"),
    "unsupported_media": (REST, "test_refused_by_name"),
    "not_acceptable": (REST, "test_refused_by_name"),
    "not_found": (STREAM, "test_a_handshake_to_another_path_is_refused_by_name"),
    "method": (REST, "test_refused_by_name"),
    "upgrade_required": (STREAM, "test_a_request_to_the_stream_is_told_what_it_is_for"),
}
"""The test that makes each happen, with a running service where it can happen there."""


@pytest.fixture
async def raising(tiny_model):
    """The application, with a path that raises whatever class of error is named."""
    app = create_app(Settings(), tiny_model)

    @app.get("/raise/{code}")
    async def fail(code: str) -> None:
        if code == "secret":
            raise RuntimeError("the secret")
        raise made(error_classes()[code])

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield http


def made(cls: type[CodecError]) -> CodecError:
    wants_time = "retry_after_ms" in inspect.signature(cls).parameters
    return cls("subject", "this", "that", **({"retry_after_ms": 1001} if wants_time else {}))


def test_every_code_is_provoked_somewhere():
    assert set(PROVOKED_BY) == set(STATUS_MAP) - BRANCHES


@pytest.mark.parametrize("code", PROVOKED_BY)
def test_the_test_that_provokes_it_exists_and_knows_it(code):
    name, test = PROVOKED_BY[code]
    text = (TESTS / name).read_text()
    functions = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert test in functions
    assert f'"{code}"' in text or f" {code}" in text or error_classes()[code].__name__ in text


@pytest.mark.parametrize("code", STATUS_MAP)
async def test_an_application_answers_it_as_the_table_says(raising, code):
    """ANCHORS E2, E3, F1: one reason for each cause."""
    answer = await raising.get(f"/raise/{code}")
    assert answer.status_code == STATUS_MAP[code].http_status
    assert answer.json() == {"error": error_fields(made(error_classes()[code]))}
    assert answer.json()["error"]["code"] == code
    assert answer.headers["x-mimi-error"] == code
    assert answer.headers.get("retry-after") == ("2" if "retry_after_ms" in answer.json()["error"] else None)
    assert answer.headers.get("www-authenticate") == ("Bearer" if answer.status_code == 401 else None)
    lines = (await raising.get("/metrics")).text.splitlines()
    assert [line for line in lines if line.startswith("mimi_errors_total{")] == [
        f'mimi_errors_total{{code="{code}",transport="http"}} 1.0'
    ]


async def test_what_is_no_error_of_ours_is_internal_and_hides_its_text(raising):
    answer = await raising.get("/raise/secret")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert answer.json()["error"]["found"] == "RuntimeError"
    assert "secret" not in answer.text
