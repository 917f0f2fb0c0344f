from __future__ import annotations

import pytest

from codec_core.errors import InputError, NumericOverflowError, SessionBusyError
from server.frame_errors import naming_frame


def test_a_refused_frame_is_named_instead_of_its_place_in_the_batch():
    with pytest.raises(NumericOverflowError) as refusal, naming_frame(12):
        raise NumericOverflowError("latent of lane 3", "a value that is not finite", "finite values")
    error = refusal.value
    assert (error.subject, error.found, error.expected) == ("frame 12: latent", "a value that is not finite", "finite values")


def test_what_is_not_the_inputs_fault_passes_as_it_is():
    with pytest.raises(SessionBusyError, match=r"^encoder$"), naming_frame(12):
        raise SessionBusyError("encoder")
    assert not issubclass(SessionBusyError, InputError)
