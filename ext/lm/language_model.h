// A loaded language model: geometry, weights, kernels and threads. Immutable once made and shared by every session, from any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/scratch_pool.h"
#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "lm/depformer.h"
#include "lm/geometry.h"
#include "lm/temporal_model.h"
#include "state/state_layout.h"
#include "weights/gguf_reader.h"
#include "weights/row_reader.h"
#include "weights/tensor_window.h"

namespace mimi {

struct LanguageModelOptions {
    std::string isa;          // name of a kernel table, or empty: the best this machine has
    std::size_t threads = 1;  // threads one step may use, the caller included
    WindowOptions window = {};
};

class LanguageModel {
public:
    // Reads, checks and packs the file at `path`. Afterwards it is closed, unless the budget leaves weights in it; then it must
    // stay as it is, and a step may fail with model_access. Errors: model_access, model_format, model_contract,
    // setting, unavailable.
    static std::shared_ptr<const LanguageModel> open(const std::string& path, const LanguageModelOptions& options);

    LanguageModel(const GgufReader& file, const LanguageModelOptions& options);
    ~LanguageModel() { window_.unbind(); }
    LanguageModel(const LanguageModel&) = delete;
    LanguageModel& operator=(const LanguageModel&) = delete;

    const LmGeometry& geometry() const { return geometry_; }
    const std::string& name() const { return name_; }                  // general.name, or empty
    const std::string& conditioners() const { return conditioners_; }  // moshi.lm.conditioners, or empty
    const std::string& weight_class() const { return weight_class_; }
    const KernelTable& kernels() const { return kernels_; }
    const TemporalModel& temporal() const { return *temporal_; }
    const Depformer* depformer() const { return depformer_.get(); }  // nullptr: the model chooses no codes
    const std::shared_ptr<const StateLayout>& state_layout() const { return layout_; }
    TensorWindow& window() const { return window_; }
    // Of the file, by one step or prompt that computes codes: matrices that pass through, each once.
    std::uint64_t step_read_bytes() const { return window_.streamed_file_bytes(0, step_layers_); }
    // Rows of tables that stay in the file; nullptr where they are in memory.
    const RowReader* rows() const { return rows_.get(); }
    ThreadPool& pool() const { return pool_; }
    ScratchPool& scratches() const { return scratches_; }
    std::size_t weights_bytes() const { return window_.bound_plan().memory_bytes(); }

private:
    void load_tables(const GgufReader& file, bool stay);

    LmGeometry geometry_;
    std::string name_, conditioners_, weight_class_;
    const KernelTable& kernels_;
    std::shared_ptr<const StateLayout> layout_;
    mutable TensorWindow window_;
    std::size_t step_layers_ = 0;
    std::unique_ptr<const RowReader> rows_;
    std::unique_ptr<TemporalModel> temporal_;
    std::unique_ptr<Depformer> depformer_;
    mutable ThreadPool pool_;
    mutable ScratchPool scratches_;
};

// What of a model would stay in memory under a budget, without loading more than what always does. Errors: model_access,
// model_format, model_contract, setting.
WindowPlan plan_language_window(const GgufReader& file, const WindowOptions& options);

}  // namespace mimi
