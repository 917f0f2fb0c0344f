"""Which snapshot store the settings ask for."""

from __future__ import annotations

import logging

from codec_core import CodecModel
from codec_core.errors import SettingError
from server.settings import Settings
from server.snapshot_store import SnapshotStore, open_store

SNAPSHOT_OVERHEAD_BYTES = 8 << 20
"""Room for all that a stream's snapshot holds besides the codec's states and the answers: samples and counters."""

log = logging.getLogger("mimi.server.snapshots")


def store_for(settings: Settings, model: CodecModel, language_state_bytes: int = 0) -> SnapshotStore | None:
    """Open the store; ``None`` where there is no use for one, for want of a secret or of any grace time, or no place.

    ``language_state_bytes`` is what a stream's state in a language model comes to.

    Raises:
        SettingError: a store without a secret, or a named one that cannot be used.
        UnavailableError: the package that the store needs is not installed.

    """
    if not settings.secret:
        if settings.snapshot_store:
            raise SettingError("snapshot_store", "no secret beside it", "a secret: snapshots are signed with it")
        return None
    if not settings.resume_grace_ms:
        return None
    states_bytes = model.info.encoder_state_bytes + model.info.decoder_state_bytes + language_state_bytes
    try:
        return open_store(
            settings.snapshot_store,
            time_to_live_s=(settings.resume_grace_ms + 2 * settings.checkpoint_interval_ms) / 1000,
            max_snapshot_bytes=states_bytes + 2 * settings.replay_window_bytes + SNAPSHOT_OVERHEAD_BYTES,
            max_bytes=settings.max_snapshot_store_bytes,
        )
    except SettingError as error:
        if settings.snapshot_store:
            raise
        # The secret may be there for other reasons, in a container that has nowhere to write.
        log.warning("streams will not outlive this process: %s", error)
        return None
