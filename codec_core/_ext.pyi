"""
The C++ engine. Use it through codec_core's classes; only codec_core itself imports this module.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy
from numpy.typing import NDArray

class GgufFile:
    """
    A GGUF file whose header has been checked; of what it is, and whether that is complete, nothing is known.

    Raises ModelAccessError or ModelFormatError.
    """

    def __init__(self, path: str) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def tensors(self) -> list[dict[str, Any]]:
        """
        In the file's order: name, type, dims (fastest-varying first), offset_bytes (from the start of the file), bytes.
        """

    @property
    def metadata(self) -> dict[str, Any]:
        """Values as Python's own; an array as its element_type and count."""

    def array(self, key: str) -> list[str] | bytes:
        """
        The elements of an array: strings as such, numbers as the bytes they are in the file.
        """

    def payload(self, name: str) -> bytes:
        """A tensor's payload as it lies in the file."""

    def rows(self, name: str, first_row: int, rows: int) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))]:
        """
        Rows of a tensor of f32, f16, bf16, q8_0, q4_0 or q4_k as float32 [rows, dims[0]]; finite.
        """

def check_language_model(file: GgufFile) -> dict[str, Any]:
    """
    Checks a language model's file completely, values included, and returns its sizes.

    Memory use does not grow with the file. Raises ModelContractError, ModelFormatError or ModelAccessError.
    """

def inspect_model(path: str) -> dict[str, Any]:
    """
    Checks a model file completely, values included, and says what it holds.

    Returns a dict: weight_class, numerics (the file's default), name (general.name, else the file's own),
    geometry (nested dict), tensors (list of dict: name, stored_name, type, shape slowest-varying first as numpy has it,
    bytes), metadata (values as Python's own; an array as its element_type and count), file_bytes.
    Memory use does not grow with the file. Raises ModelAccessError, ModelFormatError or ModelContractError.
    """

def mangled_name(name: str) -> str:
    """
    Returns a tensor's name as raw files of moshi.cpp store it: shortened to 8 characters if it has 64 or more.
    """

class CodecModel:
    """A loaded model: immutable, shared by every session."""

    @staticmethod
    def open(
        path: str, numerics: str = "", isa: str = "", threads: int = 1, ram_budget_bytes: int = 0, window_slots: int = 0
    ) -> CodecModel:
        """
        Reads, checks and packs a GGUF file. Empty `numerics`: what the file asks for. Empty `isa`: the best here.

        `ram_budget_bytes`: most bytes of weights in memory, 0 for no limit; `window_slots`: slots of the tensor window, 0 for as
        many as serve.
        """

    @property
    def name(self) -> str: ...
    @property
    def weight_class(self) -> str: ...
    @property
    def numerics(self) -> str: ...
    @property
    def isa(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def sample_rate_hz(self) -> int: ...
    @property
    def frame_samples(self) -> int: ...
    @property
    def frame_rate_hz(self) -> float: ...
    @property
    def levels(self) -> int: ...
    @property
    def default_levels(self) -> int: ...
    @property
    def codebook_entries(self) -> int: ...
    @property
    def context_steps(self) -> int: ...
    @property
    def weights_bytes(self) -> int: ...
    @property
    def window_plan(self, /) -> dict[str, int]: ...
    @property
    def window_stats(self, /) -> dict[str, Any]: ...
    @property
    def encode_read_bytes(self) -> int: ...
    @property
    def decode_read_bytes(self) -> int: ...
    @property
    def encoder_state_bytes(self) -> int: ...
    @property
    def decoder_state_bytes(self) -> int: ...

def plan_window(path: str, ram_budget_bytes: int, numerics: str = "") -> dict[str, int]:
    """
    What of a model would stay in memory under a budget (0: no limit), without loading more than what always does.

    Returns a dict of sizes in bytes and counts: budget_bytes, minimum_bytes (the least budget), full_bytes (from there on all
    stays), fixed_bytes (what always stays), staging_bytes, layers, resident_layers, resident_bytes (fixed and layers),
    streamed_bytes, slots, slot_bytes, memory_bytes. Raises as CodecModel.open().
    """

def flop_per_s(isa: str, threads: int, seconds: float) -> float:
    """
    The most multiplications and additions of float32 a second that so many threads reach.
    """

def read_bytes_per_s(isa: str, threads: int, seconds: float, bytes: int) -> float:
    """
    The most bytes a second at which so many threads read memory of this size from end to end, again and again.
    """

class StageClock:
    """Notes how long each named stage of a step takes; one thread only."""

    def __init__(self) -> None: ...
    def start(self) -> None:
        """The first stage begins now."""

    def note(self, name: str) -> None:
        """The present stage ends now, and has this name."""

    @property
    def seconds(self) -> list[tuple[str, float]]:
        """(stage, seconds in all), in the order in which they were first seen."""

class Session:
    """One stream's state."""

    @property
    def levels(self) -> int: ...
    @property
    def position_frames(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    def require_open(self) -> None: ...
    def reset(self) -> None: ...
    def close(self) -> None: ...
    def save_state(self) -> bytes: ...
    def load_state(self, state: bytes) -> None: ...

class EncoderSession(Session):
    """PCM to codes."""

    def __init__(self, model: CodecModel, levels: int) -> None: ...

class DecoderSession(Session):
    """Codes to PCM."""

    def __init__(self, model: CodecModel, levels: int) -> None: ...

def encode_batch(
    sessions: list[EncoderSession],
    pcm: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    observer: object | None = None,
) -> Annotated[NDArray[numpy.int32], dict(order="C")]:
    """
    One frame of each session: float32 [sessions, frame_samples] -> int32 [sessions, levels].

    `observer(name, float32 [lanes, rows, channels])` sees every stage; what it raises ends the step unmade.
    A StageClock in its place only notes the time.
    """

def decode_batch(
    sessions: list[DecoderSession],
    codes: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    observer: object | None = None,
) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
    """
    One frame of each session: int32 [sessions, levels] -> float32 [sessions, frame_samples], not clipped.
    """

def encode_batch_with_latents(
    sessions: list[EncoderSession],
    pcm: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
) -> tuple[Annotated[NDArray[numpy.int32], dict(order="C")], Annotated[NDArray[numpy.float32], dict(order="C")]]:
    """
    One frame of each session: float32 [sessions, frame_samples] -> int32 [sessions, levels] and the latents
    these were chosen for, float32 [sessions, dim].
    """

def decode_latents(
    model: CodecModel, codes: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)]
) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
    """
    What the decoder makes of codes before it upsamples: int32 [frames, levels] -> float32 [frames, dim].
    """

def codebook(model: CodecModel, level: int) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
    """The codewords of a level: float32 [entries, codebook dim]."""

class LanguageModel:
    """A loaded language model: immutable, shared by every session."""

    @staticmethod
    def open(path: str, isa: str = "", threads: int = 1, ram_budget_bytes: int = 0, window_slots: int = 0) -> LanguageModel:
        """
        Reads, checks and packs a GGUF file of the enriched form. Empty `isa`: the best here.

        `ram_budget_bytes`: most bytes of weights in memory, 0 for no limit; `window_slots`: slots of the tensor
        window, 0 for as many as serve.
        """

    @property
    def name(self) -> str: ...
    @property
    def conditioners(self) -> str: ...
    @property
    def weight_class(self) -> str: ...
    @property
    def isa(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def weights_bytes(self) -> int: ...
    @property
    def step_bytes(self, /) -> tuple[int, int]:
        """
        Bytes of matrices that one step multiplies: of the temporal transformer and of the depformer.
        """

    @property
    def window_plan(self, /) -> dict[str, int]: ...
    @property
    def window_stats(self, /) -> dict[str, Any]: ...
    @property
    def step_read_bytes(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def geometry(self, /) -> dict[str, Any]: ...

class LanguageSession:
    """One stream's state."""

    def __init__(
        self,
        model: LanguageModel,
        text_temperature: float,
        text_top_k: int,
        temperature: float,
        top_k: int,
        generator: str,
        seed: int,
        labels: Sequence[int | None],
        rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)] | None,
        filled: Sequence[bool],
    ) -> None: ...
    @property
    def position_steps(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def condition_vectors(self, /) -> tuple[Any, Any]:
        """(sum [0 or 1, dim], rows for cross attention [rows, dim])"""

    def require_open(self) -> None: ...
    def reset(self) -> None: ...
    def close(self) -> None: ...
    def save_state(self) -> bytes: ...
    @staticmethod
    def restore(model: LanguageModel, state: bytes) -> LanguageSession: ...

def language_step_batch(
    sessions: list[LanguageSession],
    user_codes: Any,
    texts: Any,
    codes: Any = None,
    kept: Any = None,
    noise: Any = None,
    observer: Any = None,
) -> tuple[list[int | None], Any, Any]:
    """
    One step of each session: user codes int32 [sessions, user levels] and texts int32 [sessions], -2 where the
    choice is free; likewise codes and kept, int32 [sessions, own levels]; noise float32 [sessions, 1 + own levels,
    entries]. Returns a list of texts, None where there is none yet, codes int32 [sessions, own levels], and the
    probabilities of the extra heads, float32 [sessions, heads, head dim].
    """

MOST_PROMPT_STEPS: int = 64

def language_prompt_batch(
    sessions: list[LanguageSession], user_codes: Any, texts: Any, codes: Any = None, embeddings: Any = None
) -> tuple[list[int | None], Any, Any]:
    """
    Up to MOST_PROMPT_STEPS steps of each session at once, rows being the first step of every session, then the
    second of every session, and so on: user codes int32 [rows, user levels], texts int32 [rows], codes int32
    [rows, own levels], embeddings float32 [rows, dim] in place of the sum of the tokens' own. Only the last
    steps' texts and codes may be -2. Returns texts and codes by row and the last steps' extra heads, as
    language_step_batch does.
    """

def plan_language_window(path: str, ram_budget_bytes: int) -> dict[str, int]:
    """
    What of a language model would stay in memory under a budget (0: no limit), as plan_window() says of a codec.
    """

class Kernels:
    """The kernels of one instruction set, for tests and benchmarks."""

    def __init__(self, isa: str, numerics: str = "kyutai") -> None: ...
    @staticmethod
    def usable_isas() -> list[str]:
        """Names of the kernel tables this machine can run, best first."""

    @staticmethod
    def rotary(
        position_steps: int, pairs: int, max_period: float, glibc: bool = False
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
        """float32 [2, pairs]: cosines, sines"""

    @staticmethod
    def ggml_expf(
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
        """for values in -104 .. 0; 0 below"""

    @staticmethod
    def ggml_expm1f(
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]: ...
    @staticmethod
    def ggml_tanhf(
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]: ...
    @staticmethod
    def ggml_sincosf(
        angles: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
        """0 <= angles < 2^22 -> float32 [2, N]: sines, cosines"""

    def elu(
        self, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)]
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]: ...
    def gelu(
        self, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)]
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]: ...
    def round_conv_operand(
        self, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)]
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
        """to what an input of a conv can hold"""

    def round_attention_operand(
        self, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)]
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
        """to what a query, key or value can hold"""

    def matmul(
        self,
        weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        conv_operands: bool = False,
        segment: int = 0,
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
        """weights [M, K], columns [N, K] -> float32 [N, M]"""

    def quantised_matmul(
        self,
        blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        type: str = "q8_0",
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
        """
        blocks uint8 [M, bytes of K values] of q8_0, q4_0 or q4_k, columns [N, K] -> float32 [N, M]
        """

    def narrow_matmul(
        self,
        weights: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        bfloat16: bool,
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
        """
        weights uint16 [M, K], the bits of f16 or bf16, columns [N, K] -> float32 [N, M]
        """

    def rms_norm(
        self,
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]: ...
    def silu_gate(
        self,
        u: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        v: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]: ...
    def layer_norm(
        self,
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]: ...
    def attention(
        self,
        query: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        keys: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        slots: Sequence[int],
        scale: float,
    ) -> Annotated[NDArray[numpy.float32], dict(order="C")]:
        """keys, values: [slots, head_dim] -> float32 [head_dim]"""

    def nearest_codeword(
        self,
        codewords: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        residuals: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> list[int]:
        """codewords [entries, dim], residuals [N, dim] -> N codes"""

    def narrow_nearest_codeword(
        self,
        codewords: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        residuals: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> list[int]:
        """
        codewords uint16 [entries, dim], the bits of f16, residuals [N, dim] -> N codes
        """
