// Counts what a step asks of the heap once it has run before:
//   frame_path MODEL NUMERICS THREADS BATCH ROUNDS
// writes the number of allocations while the model and its streams were made, and then those of every round of three encoded
// and decoded batches.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "codec/session.h"

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
    ++allocations;
    void* memory =
        alignment == 0 ? std::malloc(bytes) : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
    return counted(bytes, 0);
}
void* operator new[](std::size_t bytes) {
    return counted(bytes, 0);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}

// The engine's own buffers come from here, beside operator new.
extern "C" void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
extern "C" void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
    ++allocations;
    return __real_aligned_alloc(alignment, bytes);
}

namespace {

class Streams {
public:
    Streams(const std::string& path, const std::string& numerics, std::size_t threads, std::size_t batch)
        : model_(mimi::CodecModel::open(path, {.numerics = numerics, .isa = "scalar", .threads = threads})),
          levels_(model_->geometry().rvq.levels()),
          samples_(batch * model_->geometry().frame_samples, 0.1f),
          codes_(batch * levels_) {
        for (std::size_t lane = 0; lane < batch; ++lane) {
            owned_encoders_.push_back(std::make_unique<mimi::EncoderSession>(model_, levels_));
            owned_decoders_.push_back(std::make_unique<mimi::DecoderSession>(model_, levels_));
            encoders_.push_back(owned_encoders_.back().get());
            decoders_.push_back(owned_decoders_.back().get());
            in_.push_back(samples_.data() + lane * model_->geometry().frame_samples);
            out_.push_back(samples_.data() + lane * model_->geometry().frame_samples);
        }
    }

    void run(std::size_t steps) {
        for (std::size_t step = 0; step < steps; ++step) {
            mimi::encode_batch(encoders_, in_.data(), codes_.data(), nullptr);
            mimi::decode_batch(decoders_, codes_.data(), out_.data(), nullptr);
        }
    }

private:
    std::shared_ptr<const mimi::CodecModel> model_;
    std::size_t levels_;
    std::vector<float> samples_;
    std::vector<std::int32_t> codes_;
    std::vector<std::unique_ptr<mimi::EncoderSession>> owned_encoders_;
    std::vector<std::unique_ptr<mimi::DecoderSession>> owned_decoders_;
    std::vector<mimi::EncoderSession*> encoders_;
    std::vector<mimi::DecoderSession*> decoders_;
    std::vector<const float*> in_;
    std::vector<float*> out_;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 6) return 2;
    const auto number = [&](int index) { return std::strtoul(arguments[index], nullptr, 10); };
    try {
        Streams streams(arguments[1], arguments[2], number(3), number(4));
        std::printf("%zu", allocations.load());
        for (unsigned long round = 0; round < number(5); ++round) {
            const std::size_t before = allocations;
            streams.run(3);
            std::printf(" %zu", allocations - before);
        }
    } catch (const mimi::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
