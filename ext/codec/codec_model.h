// A loaded model: geometry, weights, kernels and threads. Immutable once made and shared by every session, from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/scratch_pool.h"
#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "model/geometry.h"
#include "model/mimi_decoder.h"
#include "model/mimi_encoder.h"
#include "model/numerics.h"
#include "model/split_rvq.h"
#include "weights/gguf_reader.h"
#include "weights/tensor_window.h"

namespace mimi {

struct ModelOptions {
    std::string numerics;     // "kyutai", "ggml", "ggml-causal", or empty: what the file asks for
    std::string isa;          // name of a kernel table, or empty: the best this machine has
    std::size_t threads = 1;  // threads one step may use, the caller included; 1 .. max_threads
    WindowOptions window = {};
};

class CodecModel {
public:
    // Reads, checks and packs the file at `path`. Afterwards it is closed, unless layers pass through the tensor window; then
    // it must stay as it is, and a step may fail with model_access. Errors: model_access, model_format, model_contract,
    // setting, unavailable.
    static std::shared_ptr<const CodecModel> open(const std::string& path, const ModelOptions& options);

    CodecModel(const GgufReader& file, const ModelOptions& options);
    // The window's lanes use what the encoder and the decoder own.
    ~CodecModel() { window_.unbind(); }
    CodecModel(const CodecModel&) = delete;
    CodecModel& operator=(const CodecModel&) = delete;

    const Geometry& geometry() const { return geometry_; }
    const std::string& name() const { return name_; }  // general.name, or empty
    const std::string& weight_class() const { return weight_class_; }
    Numerics numerics() const { return numerics_; }
    const KernelTable& kernels() const { return kernels_; }
    const SplitRvq& rvq() const { return rvq_; }
    const MimiEncoder& encoder() const { return encoder_; }
    const MimiDecoder& decoder() const { return decoder_; }
    ThreadPool& pool() const { return pool_; }
    ScratchPool& scratches() const { return scratches_; }
    const TensorWindow& window() const { return window_; }
    // In memory: all of them, or what the window's plan allows.
    std::size_t weights_bytes() const { return window_.bound_plan().memory_bytes(); }

private:
    Geometry geometry_;
    std::string name_;
    std::string weight_class_;
    Numerics numerics_;
    NumericsPolicy policy_;
    const KernelTable& kernels_;
    TensorWindow window_;
    SplitRvq rvq_;
    MimiEncoder encoder_;
    MimiDecoder decoder_;
    mutable ThreadPool pool_;
    mutable ScratchPool scratches_;
};

// What the file's weights would come to under `options`, without loading more than what always stays. Errors as open().
WindowPlan plan_model_window(const GgufReader& file, const ModelOptions& options);

}  // namespace mimi
