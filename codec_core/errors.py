"""The one error tree, from the C++ engine to close codes and exit lines.

::

    CodecError
    ├── ModelFileError
    │   ├── ModelAccessError       model_access      cannot be opened or read, or changed while it was read
    │   ├── ModelFormatError       model_format      not a well-formed GGUF file
    │   └── ModelContractError     model_contract    well-formed, but not a Mimi model this engine runs
    ├── InputError
    │   ├── InputShapeError        input_shape       wrong number of dimensions, length or count
    │   ├── InputTypeError         input_type        an element type that is not taken
    │   ├── NonFiniteInputError    non_finite_input  NaN or infinity in PCM
    │   ├── CodeRangeError         code_range        a code outside 0 .. codebook_entries - 1
    │   ├── SettingError           setting           a setting outside its legal values
    │   ├── NumericOverflowError   numeric_overflow  finite input drove the network out of range
    │   ├── SnapshotError          snapshot          damaged, or of another model
    │   ├── AudioFileError         audio_file        an audio file that cannot be read or written
    │   ├── CodesFileError         codes_file        a code file that cannot be read or written
    │   ├── OpusDataError          opus_data         bytes that are no Opus packets, or no Ogg pages of them
    │   ├── CheckpointError        checkpoint        a source checkpoint that cannot be converted
    │   └── OutputExistsError      output_exists     an output that would be overwritten
    ├── SessionError
    │   ├── SessionBusyError       session_busy      entered by a second thread
    │   └── SessionClosedError     session_closed    used after close()
    ├── UnavailableError           unavailable       legal, but not on this machine or in this build
    └── InternalError              internal          a broken promise of ours; please report

Each error carries ``code`` (the middle column; the same name goes over the wire, into metrics and into logs), and the three
facts a person needs: ``subject`` (the tensor, key, argument or field), ``found`` and ``expected``; either of the last two may
be empty. The service adds its own branch in :mod:`server.errors`.
"""

from __future__ import annotations

from typing import ClassVar


class CodecError(Exception):
    """Root of the tree. ``str()`` reads ``subject: found X, expected Y``."""

    code: ClassVar[str] = "codec"

    def __init__(self, subject: str, found: str = "", expected: str = "") -> None:
        message = subject
        if found:
            message += f": found {found}"
        if expected:
            message += (", expected " if found else ": expected ") + expected
        super().__init__(message)
        self.subject = subject
        self.found = found
        self.expected = expected


class ModelFileError(CodecError):
    """A model file is refused."""

    code = "model_file"


class ModelAccessError(ModelFileError):
    """The file cannot be opened or read, or changed while it was read."""

    code = "model_access"


class ModelFormatError(ModelFileError):
    """The bytes are not a well-formed GGUF file."""

    code = "model_format"


class ModelContractError(ModelFileError):
    """Well-formed, but not a Mimi model this engine runs."""

    code = "model_contract"


class InputError(CodecError):
    """What the caller passed is refused; nothing was changed."""

    code = "input"


class InputShapeError(InputError):
    """Wrong number of dimensions, length or count."""

    code = "input_shape"


class InputTypeError(InputError):
    """An element type that is not taken."""

    code = "input_type"


class NonFiniteInputError(InputError):
    """NaN or infinity in PCM."""

    code = "non_finite_input"


class CodeRangeError(InputError):
    """A code outside 0 .. codebook_entries - 1."""

    code = "code_range"


class SettingError(InputError):
    """A setting outside its legal values."""

    code = "setting"


class NumericOverflowError(InputError):
    """Finite input drove the network out of the range of f32."""

    code = "numeric_overflow"


class SnapshotError(InputError):
    """A snapshot that is damaged or belongs to another model."""

    code = "snapshot"


class AudioFileError(InputError):
    """An audio file that cannot be read or written."""

    code = "audio_file"


class CodesFileError(InputError):
    """A code file that cannot be read or written."""

    code = "codes_file"


class OpusDataError(InputError):
    """Bytes that are no Opus packets, or no Ogg pages of them."""

    code = "opus_data"


class CheckpointError(InputError):
    """A source checkpoint that cannot be converted."""

    code = "checkpoint"


class OutputExistsError(InputError):
    """An output that would be overwritten."""

    code = "output_exists"


class SessionError(CodecError):
    """A session that cannot take this call now."""

    code = "session"


class SessionBusyError(SessionError):
    """Entered by a second thread while a call was running."""

    code = "session_busy"


class SessionClosedError(SessionError):
    """Used after ``close()``."""

    code = "session_closed"


class UnavailableError(CodecError):
    """Legal, but not on this machine or in this build."""

    code = "unavailable"


class InternalError(CodecError):
    """A broken promise of ours; please report."""

    code = "internal"


def _descendants(root: type[CodecError]) -> list[type[CodecError]]:
    found = [root]
    for child in root.__subclasses__():
        found.extend(_descendants(child))
    return found


def error_classes() -> dict[str, type[CodecError]]:
    """Every class of the tree by its code, the service's branch included once :mod:`server.errors` is imported."""
    return {cls.code: cls for cls in _descendants(CodecError)}
