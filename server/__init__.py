"""The service over :mod:`codec_core`: a WebSocket for live streams, REST for clips, probes for operators.

``wire`` is sans-IO; the ``*_endpoint`` modules answer the network; ``session_registry`` decides who is let in and
``codec_executor`` runs the engine off the event loop. The wire is specified in ``docs/protocol.md``. Nothing here
imports the C++ extension; everything goes through :mod:`codec_core`.
"""
