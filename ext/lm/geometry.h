// Every hyper-parameter of a Moshi language model, from `moshi.lm.*` metadata and the shapes of its tensors, checked against
// one another.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weights/gguf_reader.h"

namespace mimi {

// Which elements of a head turn together.
enum class RotaryPairs {
    none,         // the positions are not encoded
    interleaved,  // 2 j and 2 j + 1
    halves,       // j and j + half the head
};

struct GatedTransformerGeometry {
    std::size_t dim = 0;
    std::size_t layers = 0;
    std::size_t heads = 0;
    std::size_t key_heads = 0;  // query head i reads key head i / (heads / key_heads)
    std::size_t head_dim = 0;
    std::size_t gating_width = 0;   // between the two matrices of a gated unit
    std::size_t context_steps = 0;  // keys a query sees, itself included
    double max_period = 0;
    RotaryPairs rotary = RotaryPairs::none;
    std::size_t key_dim() const { return key_heads * head_dim; }
    // Rows of the attention's input matrix: queries, keys, values.
    std::size_t input_rows() const { return dim + 2 * key_dim(); }
};

// A condition a stream may be given: by label, or as rows of numbers.
struct ConditionerGeometry {
    std::string name;
    std::size_t width = 0;   // of what the output projection takes
    std::size_t labels = 0;  // rows of the table besides the one for "absent"; 0: takes rows
};

struct LmGeometry {
    std::size_t audio_channels = 0;    // n_q
    std::size_t depformer_levels = 0;  // dep_q: codebooks the file's depformer has
    std::size_t own_levels = 0;        // of them, those that are the model's own; the others are the user's
    std::size_t codebook_entries = 0;  // card; this number itself is the initial code
    std::size_t text_entries = 0;      // text_card; this number itself is the initial token
    std::size_t text_outputs = 0;      // rows of the text head
    std::size_t text_padding_id = 0;
    std::vector<std::size_t> delays_steps;  // [channels()]
    GatedTransformerGeometry temporal;
    GatedTransformerGeometry depformer;    // of no layers where there is none
    std::vector<std::size_t> weight_sets;  // [depformer_levels]: which set each sub-step uses
    std::size_t weight_set_count = 0;
    std::size_t input_set_count = 0;  // of depformer_in: 1 where all sub-steps share it
    std::size_t low_rank = 0;         // of the depformer's embeddings; 0: full
    bool depformer_norm = false;
    bool two_text_streams = false;  // muxed in one id
    bool cross_attention = false;
    std::size_t extra_heads = 0;
    std::size_t extra_head_dim = 0;
    std::vector<ConditionerGeometry> conditioners;
    double cross_position_scale = 0;  // of the sinusoids added to cross conditions

    std::size_t channels() const { return audio_channels + 1; }
    std::size_t user_channels() const { return audio_channels - own_levels; }
    std::size_t max_delay_steps() const;
    // Ids a text channel may hold: more than text_entries where two streams are muxed.
    std::size_t text_ids() const;
};

// Refuses, each with a sentence that says what to do, files that are no language model of the enriched form: another
// architecture or component, a raw file without metadata, one part of a split file. Error{model_contract}.
void check_lm_component(const GgufReader& file);

// Error{model_contract} naming the tensor or key where it is missing, contradicts another, or exceeds what a sane file can
// have. Needs no payload.
LmGeometry read_lm_geometry(const GgufReader& file);

}  // namespace mimi
