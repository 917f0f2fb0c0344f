// A tensor window over a file in memory, whose reads a test can make fail or wait.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "base/error.h"
#include "weights/tensor_window.h"

namespace mimi {

inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::exit(1);
}

// A file in memory whose reads can be made to fail or to wait.
class MemoryReader : public ByteReader {
public:
    explicit MemoryReader(std::vector<unsigned char>& bytes) : bytes_(bytes) {}

    const std::byte* read(std::uint64_t offset, std::size_t size, std::byte* room) const override {
        {
            std::unique_lock lock(mutex_);
            ++reads_;
            opened_.wait(lock, [this] { return !shut_; });
        }
        if (failures_left_ > 0 && failures_left_-- > 0)
            throw Error(ErrorCode::model_access, "model file 'memory'", "an injected fault", "bytes");
        const std::size_t skipped = offset % direct_alignment_bytes;
        std::memcpy(room + skipped, bytes_.data() + offset, size);
        return room + skipped;
    }

    void fail_next(int reads) { failures_left_ = reads; }
    void shut() {
        const std::lock_guard lock(mutex_);
        shut_ = true;
    }
    void open() {
        {
            const std::lock_guard lock(mutex_);
            shut_ = false;
        }
        opened_.notify_all();
    }
    long reads() const {
        const std::lock_guard lock(mutex_);
        return reads_;
    }

private:
    std::vector<unsigned char>& bytes_;
    mutable std::mutex mutex_;
    mutable std::condition_variable opened_;
    mutable long reads_ = 0;
    mutable std::atomic<int> failures_left_{0};
    bool shut_ = false;
};

// The window owns its reader; the test keeps hold of one behind it.
class SharedReader : public ByteReader {
public:
    explicit SharedReader(const MemoryReader& reader) : reader_(reader) {}
    const std::byte* read(std::uint64_t offset, std::size_t size, std::byte* room) const override {
        return reader_.read(offset, size, room);
    }

private:
    const MemoryReader& reader_;
};

// Flips every byte, so that what was not packed is seen.
class FlippingPacker : public PartPacker {
public:
    explicit FlippingPacker(std::size_t size) : size_(size) {}
    std::size_t stored_unit_bytes() const override { return 64; }
    std::size_t packed_bytes() const override { return size_; }
    void check(const GgufTensor& tensor, const std::byte*, std::size_t start, std::size_t size) const override {
        require(start + size <= tensor.size_bytes, "a check inside the tensor");
    }
    void pack(const std::byte* stored, std::size_t start, std::size_t size, std::byte* packed) const override {
        for (std::size_t i = 0; i < size; ++i) packed[start + i] = ~stored[i];
    }

private:
    std::size_t size_;
};

// Two cycles of layers of three matrices.
class Fixture {
public:
    Fixture(std::size_t first_cycle, std::size_t second_cycle, bool longer_than_a_chunk = false)
        : small_(64 * 37), middle_(64 * 64), long_(chunk_bytes + 64 * 3) {
        const std::size_t layers = first_cycle + second_cycle;
        std::vector<std::vector<const FlippingPacker*>> shapes(layers);
        std::uint64_t offset = 96;
        for (std::size_t layer = 0; layer < layers; ++layer) {
            shapes[layer] = {&small_, longer_than_a_chunk ? &long_ : &middle_, &small_};
            for (const FlippingPacker* packer : shapes[layer]) {
                tensors_.push_back(std::make_unique<GgufTensor>());
                tensors_.back()->offset_bytes = offset;
                tensors_.back()->size_bytes = packer->packed_bytes();
                offset += packer->packed_bytes() + 32;
            }
        }
        bytes_.resize(static_cast<std::size_t>(offset));
        std::mt19937 random(7);
        for (unsigned char& byte : bytes_) byte = static_cast<unsigned char>(random());
        std::size_t next = 0;
        std::vector<std::vector<WindowPart>> parts(layers);
        for (std::size_t layer = 0; layer < layers; ++layer)
            for (const FlippingPacker* packer : shapes[layer]) parts[layer].push_back({tensors_[next++].get(), packer});
        window.add_cycle({parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(first_cycle)});
        window.add_cycle({parts.begin() + static_cast<std::ptrdiff_t>(first_cycle), parts.end()});
    }

    // Under the least budget that has so many slots and resident layers.
    void bind(std::size_t slots, std::size_t residents = 0) {
        const WindowPlan least = window.plan(0, {});
        const std::size_t budget = least.minimum_bytes + (slots + residents - 1) * least.slot_bytes;
        const WindowPlan plan = window.plan(0, {budget, slots});
        require(plan.slots == slots && plan.resident_layers() == residents, "a plan as asked for");
        window.bind(std::make_unique<SharedReader>(reader), plan);
    }

    bool is_right(std::size_t layer, const std::byte* packed) const {
        std::size_t at = 0;
        for (std::size_t part = 3 * layer; part < 3 * layer + 3; ++part) {
            const GgufTensor& tensor = *tensors_[part];
            for (std::uint64_t i = 0; i < tensor.size_bytes; ++i, ++at)
                if (packed[at] != ~std::byte{bytes_[static_cast<std::size_t>(tensor.offset_bytes + i)]}) return false;
        }
        return true;
    }

    void visit(std::size_t layer) {
        const TensorWindow::Lease lease = window.acquire(layer);
        require(is_right(layer, lease.packed()), "a leased layer's bytes");
    }

private:
    std::vector<std::unique_ptr<GgufTensor>> tensors_;
    std::vector<unsigned char> bytes_;
    FlippingPacker small_, middle_, long_;

public:
    MemoryReader reader{bytes_};
    TensorWindow window;
};

inline void run_in_threads(std::size_t count, const std::function<void(std::size_t)>& body) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(body, i);
    for (std::thread& thread : threads) thread.join();
}

template <class Condition>
void wait_until(const Condition& condition) {
    while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

inline ErrorCode code_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    return ErrorCode::internal;
}

}  // namespace mimi
