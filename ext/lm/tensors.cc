#include "lm/tensors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "model/contract.h"
#include "model/tensor_names.h"
#include "weights/dequantise.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

constexpr std::size_t condition_width_cap = 16384;
constexpr std::size_t condition_labels_cap = 65536;
const std::string conditioner_prefix = "condition_provider.conditioners.";

[[noreturn]] void refuse(std::string subject, std::string found, std::string expected) {
    throw Error(ErrorCode::model_contract, std::move(subject), std::move(found), std::move(expected));
}

std::string stored_name(const std::string& name) {
    return "lm." + name;
}

std::string subject(const std::string& name) {
    return "tensor " + quoted(stored_name(name));
}

void check_type(const GgufTensor& tensor) {
    if (is_dequantisable(tensor.type)) return;
    refuse("tensor " + quoted(tensor.name) + " type", std::string(tensor_type_name(tensor.type)),
           "f32, f16, bf16, q8_0, q4_0 or q4_k");
}

GgufTensor slice_rows(const GgufTensor& tensor, std::size_t first, std::size_t count) {
    const std::uint64_t rows = tensor.dims.size() > 1 ? tensor.dims[1] : 1;
    const std::uint64_t row_bytes = tensor.size_bytes / rows;
    GgufTensor slice = tensor;
    slice.dims = {tensor.dims[0], count};
    slice.offset_bytes = tensor.offset_bytes + first * row_bytes;
    slice.size_bytes = count * row_bytes;
    slice.elements = count * tensor.dims[0];
    return slice;
}

// Takes tensors out of a file one after another, each once.
class Claims {
public:
    Claims(const GgufReader& file, std::map<std::string, GgufTensor>& taken)
        : file_(file), taken_(taken), claimed_(file.tensors().size(), false) {}

    bool has(const std::string& name) const { return file_.find(stored_name(name)) != nullptr; }

    void matrix(const std::string& name, std::size_t inputs, std::size_t outputs) { take(name, {inputs, outputs}); }
    void vector(const std::string& name, std::size_t size) { take(name, {size}); }

    // A matrix that files may have or lack.
    void spare(const std::string& name, std::size_t inputs, std::size_t outputs) {
        if (has(name)) take(name, {inputs, outputs});
    }

    // `stem` is "in_proj" or "out_proj" of an attention. Of `sets` sets the file need only have the first `least`.
    void attention(const std::string& attention, const std::string& stem, std::size_t inputs, std::size_t outputs,
                   std::size_t sets, std::size_t least) {
        std::vector<std::string> fused = {attention + stem + ".weight"};
        if (stem == "in_proj") fused.push_back(attention + "in_proj_weight");
        const std::string split = attention + stem + "s.";
        std::vector<std::string> found;
        for (const std::string& name : fused)
            if (has(name)) found.push_back(name);
        if (has(split + "0.weight")) found.push_back(split + "0.weight");
        if (found.size() > 1)
            refuse(subject(found[1]), "beside " + quoted(stored_name(found[0])), "one of the two, fused or by weight set");
        if (found.empty())
            refuse(subject(split + "0.weight"), "no such tensor",
                   "it, or all sets fused in " + quoted(stored_name(fused.back())));
        if (found[0] == split + "0.weight") {
            for (std::size_t set = 0; set < sets; ++set) {
                const std::string name = split + std::to_string(set) + ".weight";
                if (set < least || has(name)) matrix(name, inputs, outputs);
            }
            return;
        }
        cut(found[0], split, inputs, outputs, sets, least);
    }

    // Unnumbered only where there is one set.
    void gating(const std::string& layer, std::size_t dim, std::size_t width, std::size_t sets, std::size_t least) {
        for (std::size_t set = 0; set < sets; ++set) {
            const std::string numbered = layer + "gating." + std::to_string(set) + ".";
            const bool plain = sets == 1 && has(layer + "gating.linear_in.weight");
            const std::string stored = plain ? layer + "gating." : numbered;
            if (set >= least && !has(stored + "linear_in.weight")) continue;
            take(stored + "linear_in.weight", {dim, 2 * width}, numbered + "linear_in.weight");
            take(stored + "linear_out.weight", {width, dim}, numbered + "linear_out.weight");
        }
    }

    void require_nothing_left() const {
        const auto left = std::find(claimed_.begin(), claimed_.end(), false);
        if (left == claimed_.end()) return;
        const GgufTensor& tensor = file_.tensors()[static_cast<std::size_t>(left - claimed_.begin())];
        refuse("tensor " + quoted(tensor.name), "a tensor this model has no use for", "only the tensors of its geometry");
    }

private:
    void take(const std::string& name, std::vector<std::uint64_t> dims) { take(name, std::move(dims), name); }

    void take(const std::string& name, std::vector<std::uint64_t> dims, const std::string& known_as) {
        const GgufTensor& tensor = claim(name);
        if (without_trailing_ones(tensor.dims) != without_trailing_ones(dims))
            refuse("tensor " + quoted(tensor.name) + " dims", dims_text(tensor.dims), dims_text(dims));
        taken_.emplace(known_as, tensor);
    }

    void cut(const std::string& name, const std::string& split, std::size_t inputs, std::size_t outputs, std::size_t sets,
             std::size_t least) {
        const GgufTensor& tensor = claim(name);
        const std::vector<std::uint64_t> all = {inputs, sets * outputs}, few = {inputs, least * outputs};
        const std::vector<std::uint64_t> dims = without_trailing_ones(tensor.dims);
        if (dims != without_trailing_ones(all) && dims != without_trailing_ones(few))
            refuse("tensor " + quoted(tensor.name) + " dims", dims_text(tensor.dims),
                   dims_text(all) + ": " + std::to_string(sets) + (sets == 1 ? " weight set of " : " weight sets of ") +
                       std::to_string(outputs) + " rows");
        const std::size_t stored = static_cast<std::size_t>(tensor.elements / inputs / outputs);
        for (std::size_t set = 0; set < stored; ++set)
            taken_.emplace(split + std::to_string(set) + ".weight", slice_rows(tensor, set * outputs, outputs));
    }

    const GgufTensor& claim(const std::string& name) {
        const GgufTensor* tensor = file_.find(stored_name(name));
        if (tensor == nullptr) refuse(subject(name), "no such tensor", "every tensor of this model's geometry");
        claimed_[static_cast<std::size_t>(tensor - file_.tensors().data())] = true;
        check_type(*tensor);
        return *tensor;
    }

    const GgufReader& file_;
    std::map<std::string, GgufTensor>& taken_;
    std::vector<bool> claimed_;
};

void claim_layers(Claims& claims, const std::string& stem, const GatedTransformerGeometry& geometry, std::size_t sets,
                  std::size_t least) {
    for (std::size_t layer = 0; layer < geometry.layers; ++layer) {
        const std::string path = stem + std::to_string(layer) + ".";
        claims.vector(path + "norm1.alpha", geometry.dim);
        claims.vector(path + "norm2.alpha", geometry.dim);
        claims.attention(path + "self_attn.", "in_proj", geometry.dim, geometry.input_rows(), sets, least);
        claims.attention(path + "self_attn.", "out_proj", geometry.dim, geometry.dim, sets, least);
        claims.gating(path, geometry.dim, geometry.gating_width, sets, least);
    }
}

void claim_temporal(Claims& claims, const LmGeometry& geometry) {
    const std::size_t dim = geometry.temporal.dim;
    for (std::size_t channel = 0; channel < geometry.audio_channels; ++channel)
        claims.matrix("emb." + std::to_string(channel) + ".weight", dim, geometry.codebook_entries + 1);
    claims.matrix("text_emb.weight", dim, geometry.text_entries + 1);
    if (geometry.two_text_streams)
        for (const char* out : {"out1", "out2"}) claims.matrix(std::string("text_emb.") + out + ".weight", dim, dim);
    claim_layers(claims, "transformer.layers.", geometry.temporal, 1, 1);
    for (std::size_t layer = 0; geometry.cross_attention && layer < geometry.temporal.layers; ++layer) {
        const std::string path = "transformer.layers." + std::to_string(layer) + ".";
        claims.vector(path + "norm_cross.weight", dim);
        claims.vector(path + "norm_cross.bias", dim);
        claims.attention(path + "cross_attention.", "in_proj", dim, 3 * dim, 1, 1);
        claims.attention(path + "cross_attention.", "out_proj", dim, dim, 1, 1);
    }
    claims.vector("out_norm.alpha", dim);
    claims.matrix("text_linear.weight", dim, geometry.text_outputs);
    for (std::size_t head = 0; head < geometry.extra_heads; ++head)
        claims.matrix("extra_heads." + std::to_string(head) + ".weight", dim, geometry.extra_head_dim);
}

void claim_depformer_embedding(Claims& claims, const LmGeometry& geometry, const std::string& name, std::size_t rows) {
    const std::size_t dim = geometry.depformer.dim;
    const std::size_t width = geometry.low_rank > 0 ? geometry.low_rank : dim;
    claims.matrix(name + ".weight", width, rows);
    const bool muxed = name == "depformer_text_emb" && geometry.two_text_streams;
    if (muxed)
        for (const char* out : {".out1", ".out2"}) claims.matrix(name + out + ".weight", width, dim);
    // Files of the training program have it beside out1 and out2, which do its work.
    if (geometry.low_rank > 0 && muxed) claims.spare(name + ".low_rank.weight", width, dim);
    if (geometry.low_rank > 0 && !muxed) claims.matrix(name + ".low_rank.weight", width, dim);
}

void claim_depformer(Claims& claims, const LmGeometry& geometry) {
    const std::size_t dim = geometry.depformer.dim;
    const auto own = geometry.weight_sets.begin() + static_cast<std::ptrdiff_t>(geometry.own_levels);
    const std::size_t least = 1 + *std::max_element(geometry.weight_sets.begin(), own);
    for (std::size_t set = 0; set < geometry.input_set_count; ++set) {
        const std::string name = "depformer_in." + std::to_string(set) + ".weight";
        if (set < least || claims.has(name)) claims.matrix(name, geometry.temporal.dim, dim);
    }
    claim_depformer_embedding(claims, geometry, "depformer_text_emb", geometry.text_entries + 1);
    for (std::size_t level = 0; level < geometry.depformer_levels; ++level) {
        const std::string name = "depformer_emb." + std::to_string(level);
        if (level + 1 < geometry.own_levels || claims.has(name + ".weight"))
            claim_depformer_embedding(claims, geometry, name, geometry.codebook_entries + 1);
    }
    claim_layers(claims, "depformer.layers.", geometry.depformer, geometry.weight_set_count, least);
    for (std::size_t level = 0; level < geometry.depformer_levels; ++level) {
        const std::string index = std::to_string(level);
        if (level >= geometry.own_levels && !claims.has("linears." + index + ".weight")) continue;
        claims.matrix("linears." + index + ".weight", dim, geometry.codebook_entries);
        if (!geometry.depformer_norm) continue;
        claims.vector("depformer_norms." + index + ".weight", dim);
        claims.vector("depformer_norms." + index + ".bias", dim);
    }
}

void claim_conditioners(Claims& claims, const LmGeometry& geometry) {
    for (const ConditionerGeometry& conditioner : geometry.conditioners) {
        const std::string path = conditioner_prefix + conditioner.name + ".";
        if (conditioner.labels > 0) claims.matrix(path + "embed.weight", conditioner.width, conditioner.labels + 1);
        claims.matrix(path + "output_proj.weight", conditioner.width, geometry.temporal.dim);
        claims.vector(path + "learnt_padding", geometry.temporal.dim);
    }
}

}  // namespace

LmTensors::LmTensors(const GgufReader& file, const LmGeometry& geometry) : file_(file) {
    Claims claims(file, tensors_);
    claim_temporal(claims, geometry);
    if (geometry.depformer_levels > 0) claim_depformer(claims, geometry);
    claim_conditioners(claims, geometry);
    claims.require_nothing_left();
}

const GgufTensor& LmTensors::tensor(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
        throw Error(ErrorCode::internal, subject(name), "a tensor that was not checked", "one of the geometry's");
    return found->second;
}

GgufTensor LmTensors::rows(const std::string& name, std::size_t first, std::size_t count) const {
    return slice_rows(tensor(name), first, count);
}

std::vector<float> LmTensors::values(const std::string& name) const {
    const GgufTensor& found = tensor(name);
    std::vector<float> values(static_cast<std::size_t>(found.elements));
    read_rows(file_, found, 0, found.elements / found.dims.front(), values.data());
    return values;
}

std::vector<ConditionerGeometry> read_conditioners(const GgufReader& file, std::size_t dim) {
    const std::string prefix = stored_name(conditioner_prefix), suffix = ".output_proj.weight";
    std::map<std::string, ConditionerGeometry> conditioners;
    for (const GgufTensor& tensor : file.tensors()) {
        if (!tensor.name.starts_with(prefix) || !tensor.name.ends_with(suffix)) continue;
        if (tensor.name.size() <= prefix.size() + suffix.size())
            refuse("tensor " + quoted(tensor.name), "a conditioner without a name", "a name between the dots");
        ConditionerGeometry conditioner;
        conditioner.name = tensor.name.substr(prefix.size(), tensor.name.size() - prefix.size() - suffix.size());
        conditioner.width = static_cast<std::size_t>(tensor.dims[0]);
        if (conditioner.width > condition_width_cap || tensor.elements != tensor.dims[0] * dim)
            refuse("tensor " + quoted(tensor.name) + " dims", dims_text(tensor.dims),
                   "at most " + std::to_string(condition_width_cap) + " by " + std::to_string(dim));
        if (const GgufTensor* table = file.find(prefix + conditioner.name + ".embed.weight")) {
            const std::uint64_t rows = table->dims.size() > 1 ? table->dims[1] : 1;
            if (rows < 2 || rows > condition_labels_cap)
                refuse("tensor " + quoted(table->name) + " dims", dims_text(table->dims),
                       "2 to " + std::to_string(condition_labels_cap) + " rows");
            conditioner.labels = static_cast<std::size_t>(rows - 1);
        }
        conditioners.emplace(conditioner.name, conditioner);
    }
    std::vector<ConditionerGeometry> found;
    for (auto& [name, conditioner] : conditioners) found.push_back(std::move(conditioner));
    return found;
}

}  // namespace mimi
