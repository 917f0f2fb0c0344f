#include "lm/conditions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "kernels/rotary.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

GatedTransformerGeometry with_own_keys(GatedTransformerGeometry geometry) {
    geometry.key_heads = geometry.heads;
    return geometry;
}

// One lane of `rows` rows.
Activations take_rows_of(const StepContext& context, std::size_t rows, std::size_t channels) {
    return {context.scratch.take(rows * channels), 1, rows, channels, 0};
}

}  // namespace

CrossAttention::CrossAttention(const LmTensors& tensors, const GatedTransformerGeometry& geometry, const std::string& path,
                               std::size_t layer, MatrixBlock& block, MatrixBlock& once)
    : geometry_(with_own_keys(geometry)), layer_(layer), norm_(tensors, path + "norm_cross") {
    const std::string in = path + "cross_attention.in_projs.0.weight";
    query_ = block.add(tensors.rows(in, 0, geometry.dim));
    out_ = block.add(tensors.tensor(path + "cross_attention.out_projs.0.weight"));
    keys_values_ = once.add(tensors.rows(in, geometry.dim, 2 * geometry.dim));
}

void CrossAttention::attend(const StepContext& context, const MatrixBlock::Visit& visit, const Conditions* const* conditions,
                            const Activations& x) const {
    const ScratchArena::Mark mark(context.scratch);
    const Activations normal = context.take(1, geometry_.dim);
    const Activations query = context.take(1, geometry_.dim);
    auto* views = context.scratch.take_array<KeyView>(x.lanes);
    context.each_lane([&](std::size_t lane) {
        const Conditions& condition = *conditions[lane];
        const float* keys = condition.keys_values.data() + layer_ * layer_floats(condition);
        views[lane] = {.keys = keys,
                       .values = keys + layer_floats(condition) / 2,
                       .head_floats = condition.cross_rows * geometry_.head_dim,
                       .slots = condition.slots.data(),
                       .count = condition.cross_rows};
        norm_.run(context.kernels, x.row(lane, 0), normal.row(lane, 0));
    });
    visit.multiply(query_, context, normal, query);
    look_back(context, geometry_, query, views, normal);
    visit.multiply(out_, context, normal, query);
    context.each_lane([&](std::size_t lane) {
        for (std::size_t c = 0; c < x.channels; ++c) x.row(lane, 0)[c] += query.row(lane, 0)[c];
    });
}

void CrossAttention::prepare(const StepContext& context, const MatrixBlock::Visit& once, Conditions& conditions) const {
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t rows = conditions.cross_rows, dim = geometry_.dim, width = geometry_.head_dim;
    const Activations in = take_rows_of(context, rows, dim);
    const Activations out = take_rows_of(context, rows, 2 * dim);
    std::copy(conditions.cross.begin(), conditions.cross.end(), in.base);
    once.multiply(keys_values_, context, in, out);
    float* layer = conditions.keys_values.data() + layer_ * layer_floats(conditions);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t head = 0; head < 2 * geometry_.heads; ++head)
            std::copy_n(out.row(0, static_cast<std::ptrdiff_t>(row)) + head * width, width,
                        layer + (head * rows + row) * width);
}

ConditionProvider::ConditionProvider(const LmTensors& tensors, const LmGeometry& geometry, MatrixBlock& once)
    : dim_(geometry.temporal.dim), position_scale_(geometry.cross_position_scale) {
    for (const ConditionerGeometry& conditioner : geometry.conditioners) {
        const std::string path = "condition_provider.conditioners." + conditioner.name + ".";
        Conditioner made{conditioner, nullptr, once.add(tensors.tensor(path + "output_proj.weight")),
                         tensors.values(path + "learnt_padding")};
        if (conditioner.labels > 0) {
            made.table = std::make_unique<EmbeddingTable>(tensors.tensor(path + "embed.weight"));
            made.table->keep(tensors.file());
        }
        conditioners_.push_back(std::move(made));
    }
}

Conditions ConditionProvider::provide(const StepContext& context, const MatrixBlock::Visit* once,
                                      const ConditionRequest& request) const {
    Conditions conditions;
    for (std::size_t i = 0; i < conditioners_.size(); ++i) {
        if (conditioners_[i].table)
            add_label(context, *once, conditioners_[i], request.labels[i], conditions);
        else
            take_rows(context, *once, conditioners_[i], request, conditions);
    }
    return conditions;
}

void ConditionProvider::add_label(const StepContext& context, const MatrixBlock::Visit& once, const Conditioner& conditioner,
                                  const std::optional<std::size_t>& label, Conditions& conditions) const {
    if (label && *label >= conditioner.geometry.labels)
        throw Error(ErrorCode::setting, "condition " + quoted(conditioner.geometry.name), "label " + std::to_string(*label),
                    "one of " + std::to_string(conditioner.geometry.labels));
    const ScratchArena::Mark mark(context.scratch);
    const Activations row = take_rows_of(context, 1, conditioner.geometry.width);
    const Activations projected = take_rows_of(context, 1, dim_);
    if (label) {
        conditioner.table->copy_row(context.scratch, *label, row.base);
        once.multiply(conditioner.projection, context, row, projected);
    } else {
        std::copy(conditioner.padding.begin(), conditioner.padding.end(), projected.base);
    }
    if (conditions.sum.empty()) {
        conditions.sum.assign(projected.base, projected.base + dim_);
        return;
    }
    for (std::size_t c = 0; c < dim_; ++c) conditions.sum[c] += projected.base[c];
}

void ConditionProvider::take_rows(const StepContext& context, const MatrixBlock::Visit& once, const Conditioner& conditioner,
                                  const ConditionRequest& request, Conditions& conditions) const {
    const std::size_t rows = request.filled.size();
    if (rows < 1 || rows > most_condition_rows)
        throw Error(ErrorCode::setting, "condition " + quoted(conditioner.geometry.name), std::to_string(rows) + " rows",
                    "1 to " + std::to_string(most_condition_rows));
    const ScratchArena::Mark mark(context.scratch);
    const Activations in = take_rows_of(context, rows, conditioner.geometry.width);
    const Activations out = take_rows_of(context, rows, dim_);
    std::copy(request.rows.begin(), request.rows.end(), in.base);
    once.multiply(conditioner.projection, context, in, out);
    for (std::size_t row = 0; row < rows; ++row)
        if (!request.filled[row])
            std::copy(conditioner.padding.begin(), conditioner.padding.end(), out.row(0, static_cast<std::ptrdiff_t>(row)));
    conditions.cross.assign(out.base, out.base + rows * dim_);
    conditions.cross_rows = rows;
    if (position_scale_ != 0.0) add_positions(conditions);
}

// Cosines in the first half of a row, sines in the second: of row / 10000^(j / (half - 1)).
void ConditionProvider::add_positions(Conditions& conditions) const {
    const std::size_t half = dim_ / 2;
    const auto scale = static_cast<float>(position_scale_);
    const double logarithm = natural_logarithm(10000.0);
    for (std::size_t j = 0; j < half; ++j) {
        const double share = static_cast<double>(j) / static_cast<double>(std::max<std::size_t>(half - 1, 1));
        const auto period = static_cast<float>(exponential(logarithm * share));
        for (std::size_t row = 0; row < conditions.cross_rows; ++row) {
            float sine = 0.0f, cosine = 0.0f;
            sine_cosine(static_cast<float>(row) / period, sine, cosine);
            float* values = conditions.cross.data() + row * dim_;
            values[j] += scale * cosine;
            values[half + j] += scale * sine;
        }
    }
}

std::size_t ConditionProvider::size_bytes() const {
    std::size_t bytes = 0;
    for (const Conditioner& conditioner : conditioners_)
        bytes += conditioner.padding.size() * sizeof(float) + (conditioner.table ? conditioner.table->size_bytes() : 0);
    return bytes;
}

}  // namespace mimi
