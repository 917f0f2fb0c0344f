#include "lm/geometry.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "lm/tensors.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

// More than a sane file can have. They bound what a file may make a session allocate beyond the file's own size.
constexpr std::uint64_t dim_cap = 32768;
constexpr std::uint64_t layer_cap = 256;
constexpr std::uint64_t context_cap_steps = 65536;
constexpr std::uint64_t channel_cap = 64;
constexpr std::uint64_t entries_cap = 65535;  // a code, the initial one included, fits 16 bits
constexpr std::uint64_t text_cap = 1 << 20;
constexpr std::uint64_t delay_cap_steps = 1024;
constexpr std::uint64_t feed_forward_cap = 262144;
constexpr std::uint64_t period_cap = 1'000'000'000;

constexpr std::string_view remedy =
    "a file with its configuration and tokenizer in it; `mimi convert` makes one from this file, its config.json and its "
    "tokenizer";

[[noreturn]] void refuse(std::string subject, std::string found, std::string expected) {
    throw Error(ErrorCode::model_contract, std::move(subject), std::move(found), std::move(expected));
}

std::string full_key(std::string_view key) {
    return "moshi.lm." + std::string(key);
}

std::string key_subject(std::string_view key) {
    return "key " + quoted(full_key(key));
}

// `otherwise` where the key is absent; nullopt: it must be there.
std::uint64_t integer(const GgufReader& file, std::string_view key, std::uint64_t low, std::uint64_t high,
                      std::optional<std::uint64_t> otherwise = std::nullopt) {
    const std::optional<std::uint64_t> value = file.unsigned_integer(full_key(key));
    if (!value && otherwise) return *otherwise;
    const std::string range = std::to_string(low) + " to " + std::to_string(high);
    if (!value) refuse(key_subject(key), "no such key", "an integer from " + range);
    if (*value < low || *value > high) refuse(key_subject(key), std::to_string(*value), range);
    return *value;
}

bool flag(const GgufReader& file, std::string_view key, bool otherwise) {
    return file.boolean(full_key(key)).value_or(otherwise);
}

// The key's text, which is one of `choices`; the first of them where it is absent.
std::string choice(const GgufReader& file, std::string_view key, const std::vector<std::string>& choices) {
    const std::string value = file.text(full_key(key)).value_or(choices.front());
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
    std::string names;
    for (const std::string& name : choices) names += (names.empty() ? "" : " or ") + quoted(name);
    refuse(key_subject(key), quoted(value), names);
}

void require(const GgufReader& file, std::string_view key, bool expected) {
    if (flag(file, key, expected) == expected) return;
    refuse(key_subject(key), expected ? "false" : "true", expected ? "true" : "false");
}

std::vector<std::size_t> integers(const GgufReader& file, std::string_view key, std::size_t count, std::uint64_t most) {
    const auto values = file.unsigned_integers(full_key(key), channel_cap + 1);
    if (!values) refuse(key_subject(key), "no such key", "an array of " + std::to_string(count) + " integers");
    if (values->size() != count) refuse(key_subject(key), std::to_string(values->size()) + " values", std::to_string(count));
    for (std::size_t i = 0; i < count; ++i)
        if ((*values)[i] > most)
            refuse(key_subject(key) + " value " + std::to_string(i), std::to_string((*values)[i]),
                   "at most " + std::to_string(most));
    return {values->begin(), values->end()};
}

// What the published models have between the matrices of a gated unit.
std::size_t gating_width(std::size_t dim, std::size_t feed_forward) {
    return feed_forward == 4 * dim ? 21 * dim / 8 : 2 * feed_forward / 3;
}

GatedTransformerGeometry read_transformer(const GgufReader& file, const std::string& prefix, std::size_t key_repeat) {
    GatedTransformerGeometry transformer;
    transformer.dim = integer(file, prefix + "dim", 1, dim_cap);
    transformer.layers = integer(file, prefix + "num_layers", 1, layer_cap);
    transformer.heads = integer(file, prefix + "num_heads", 1, transformer.dim);
    if (transformer.dim % transformer.heads != 0 || transformer.dim / transformer.heads % 2 != 0)
        refuse(key_subject(prefix + "num_heads"), std::to_string(transformer.heads),
               "heads of an even width that divide " + std::to_string(transformer.dim));
    transformer.head_dim = transformer.dim / transformer.heads;
    const std::size_t repeat = integer(file, prefix + "kv_repeat", 1, transformer.heads, key_repeat);
    if (transformer.heads % repeat != 0)
        refuse(key_subject(prefix + "kv_repeat"), std::to_string(repeat), "a divisor of " + std::to_string(transformer.heads));
    transformer.key_heads = transformer.heads / repeat;
    transformer.gating_width = gating_width(transformer.dim, integer(file, prefix + "dim_feedforward", 2, feed_forward_cap));
    choice(file, prefix + "gating", {"silu"});
    return transformer;
}

GatedTransformerGeometry read_temporal(const GgufReader& file) {
    GatedTransformerGeometry temporal = read_transformer(file, "", 1);
    choice(file, "norm", {"rms_norm_f32"});
    require(file, "causal", true);
    temporal.rotary = choice(file, "positional_embedding", {"rope", "rope_concat"}) == "rope" ? RotaryPairs::interleaved
                                                                                              : RotaryPairs::halves;
    temporal.context_steps = integer(file, "context", 1, context_cap_steps);
    temporal.max_period = static_cast<double>(integer(file, "max_period", 2, period_cap));
    return temporal;
}

void read_depformer(const GgufReader& file, LmGeometry& geometry) {
    const std::size_t levels = geometry.depformer_levels;
    geometry.depformer = read_transformer(file, "depformer.", geometry.temporal.heads / geometry.temporal.key_heads);
    choice(file, "depformer.pos_emb", {"none"});
    // A context shorter than the sub-steps is in some configurations; no published program heeds it.
    geometry.depformer.context_steps = levels;
    geometry.low_rank = integer(file, "depformer.low_rank_embeddings", 0, geometry.depformer.dim, 0);
    geometry.depformer_norm = choice(file, "depformer.norm", {"none", "layer_norm"}) == "layer_norm";
    geometry.weight_sets.assign(levels, 0);
    if (flag(file, "depformer.weights_per_step", true)) {
        for (std::size_t level = 0; level < levels; ++level) geometry.weight_sets[level] = level;
        if (file.metadata().contains(full_key("depformer.weights_per_step_schedule")))
            geometry.weight_sets = integers(file, "depformer.weights_per_step_schedule", levels, levels - 1);
    }
    geometry.weight_set_count = 1 + *std::max_element(geometry.weight_sets.begin(), geometry.weight_sets.end());
    geometry.input_set_count = flag(file, "depformer.multi_linear", true) ? geometry.weight_set_count : 1;
    geometry.own_levels = integer(file, "inference.dep_q", 1, levels, levels);
}

void read_conditions(const GgufReader& file, LmGeometry& geometry) {
    geometry.conditioners = read_conditioners(file, geometry.temporal.dim);
    geometry.cross_attention = flag(file, "cross_attention", false);
    geometry.cross_position_scale = file.real(full_key("fuser.cross_attention_pos_emb_scale")).value_or(0.0);
    if (!(geometry.cross_position_scale >= 0.0 && geometry.cross_position_scale <= 1e6))
        refuse(key_subject("fuser.cross_attention_pos_emb_scale"), std::to_string(geometry.cross_position_scale),
               "0 to 1000000");
    const auto takes_rows = [](const ConditionerGeometry& conditioner) { return conditioner.labels == 0; };
    const auto crossed = std::count_if(geometry.conditioners.begin(), geometry.conditioners.end(), takes_rows);
    if (crossed != (geometry.cross_attention ? 1 : 0))
        refuse(key_subject("cross_attention"), geometry.cross_attention ? "true" : "false",
               "true where one conditioner has no table of labels, as " + std::to_string(crossed) + " of the file's have");
}

void check_file(const GgufReader& file, std::string_view expected) {
    const std::uint64_t parts = file.unsigned_integer("split.count").value_or(1);
    if (parts > 1)
        refuse("key 'split.count'", "one of " + std::to_string(parts) + " parts", "one whole file: merge the parts first");
    const std::string architecture = file.text("general.architecture").value_or("moshi");
    if (architecture != "moshi") refuse("key 'general.architecture'", quoted(architecture), "'moshi'");
    const std::string component = file.text("moshi.component").value_or("lm");
    if (component != "lm") refuse("key 'moshi.component'", quoted(component), "'lm', " + std::string(expected));
}

}  // namespace

std::size_t LmGeometry::max_delay_steps() const {
    return *std::max_element(delays_steps.begin(), delays_steps.end());
}

std::size_t LmGeometry::text_ids() const {
    const std::size_t rows = text_entries + 1;
    return two_text_streams ? rows * (rows + 1) : rows;
}

void check_lm_component(const GgufReader& file) {
    constexpr std::string_view expected = "a file of Moshi's language model (tensors 'lm.*')";
    check_file(file, expected);
    const auto begins = [&file](std::string_view prefix) {
        return std::any_of(file.tensors().begin(), file.tensors().end(),
                           [prefix](const GgufTensor& tensor) { return tensor.name.starts_with(prefix); });
    };
    if (!begins("lm.")) {
        const char* found = begins("mimi.")          ? "the Mimi codec (tensors 'mimi.*')"
                            : begins("voice.")       ? "a voice prompt (tensors 'voice.*')"
                            : file.tensors().empty() ? "no tensors"
                                                     : "no tensor that starts with 'lm.'";
        refuse("file", found, std::string(expected));
    }
    if (!file.metadata().contains(full_key("dim")))
        refuse("file", "a language model without metadata (a raw file of moshi.cpp)", std::string(remedy));
}

LmGeometry read_lm_geometry(const GgufReader& file) {
    check_lm_component(file);
    LmGeometry geometry;
    geometry.temporal = read_temporal(file);
    geometry.audio_channels = integer(file, "n_q", 1, channel_cap);
    geometry.depformer_levels = integer(file, "dep_q", 0, geometry.audio_channels);
    geometry.codebook_entries = integer(file, "card", 1, entries_cap);
    geometry.text_entries = integer(file, "text_card", 4, text_cap);
    geometry.text_outputs = integer(file, "text_card_out", 1, geometry.text_entries, geometry.text_entries);
    geometry.text_padding_id = integer(file, "existing_text_padding_id", 0, geometry.text_entries - 1, 3);
    geometry.delays_steps = integers(file, "delays", geometry.channels(), delay_cap_steps);
    geometry.two_text_streams = flag(file, "demux_second_stream", false);
    if (geometry.text_ids() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        refuse(key_subject("text_card"), std::to_string(geometry.text_entries), "pairs of tokens that 32 bits can number");
    geometry.extra_heads = integer(file, "extra_heads.num_heads", 0, channel_cap, 0);
    if (geometry.extra_heads > 0) geometry.extra_head_dim = integer(file, "extra_heads.dim", 1, text_cap, 6);
    if (geometry.depformer_levels > 0) read_depformer(file, geometry);
    read_conditions(file, geometry);
    return geometry;
}

}  // namespace mimi
