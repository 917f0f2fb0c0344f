"""Which snapshot store the settings ask for."""

from __future__ import annotations

from codec_core import CodecModel
from codec_core.errors import SettingError
from server.settings import Settings
from server.snapshot_store import SnapshotStore, open_store

SNAPSHOT_OVERHEAD_BYTES = 8 << 20
"""Room for all that a stream's snapshot holds besides the codec's states and the answers: samples and counters."""


def store_for(settings: Settings, model: CodecModel) -> SnapshotStore | None:
    """Open the store; ``None`` where nothing that is saved could be used, for want of a secret or of any grace time.

    Raises:
        SettingError: a store without a secret, or one that cannot be used.
        UnavailableError: the package that the store needs is not installed.

    """
    if not settings.secret:
        if settings.snapshot_store:
            raise SettingError("snapshot_store", "no secret beside it", "a secret: snapshots are signed with it")
        return None
    if not settings.resume_grace_ms:
        return None
    states_bytes = model.info.encoder_state_bytes + model.info.decoder_state_bytes
    return open_store(
        settings.snapshot_store,
        time_to_live_s=(settings.resume_grace_ms + 2 * settings.checkpoint_interval_ms) / 1000,
        max_snapshot_bytes=states_bytes + 2 * settings.replay_window_bytes + SNAPSHOT_OVERHEAD_BYTES,
        max_bytes=settings.max_snapshot_store_bytes,
    )
