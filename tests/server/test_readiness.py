from __future__ import annotations

from server.readiness import Readiness


def test_checks_are_asked_each_time_and_one_that_breaks_has_failed(caplog):
    readiness, store = Readiness(), ["the disk is full"]
    assert readiness.ready
    readiness.register("engine", lambda: None)
    readiness.register("store", lambda: store[0])
    assert readiness.results() == {"engine": "ok", "store": "the disk is full"}
    assert not readiness.ready
    store[0] = None
    assert readiness.ready
    readiness.register("broken", lambda: 1 / 0)
    assert readiness.results()["broken"] == "the check failed: ZeroDivisionError"
    assert "readiness check broken" in caplog.text
