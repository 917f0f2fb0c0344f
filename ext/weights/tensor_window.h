// The packed weights of a model's layers under a RAM budget. Layers that stay are pointers and cost nothing. The others pass
// through a ring of slots, filled ahead of use by two I/O lanes, which read a layer's chunks and pack them in place. One window
// serves every session of a model, from any number of threads; a lease keeps a layer where it is while a step uses it.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "weights/byte_reader.h"
#include "weights/slot_table.h"
#include "weights/visit_order.h"
#include "weights/window_layer.h"
#include "weights/window_plan.h"

namespace mimi {

// What has happened since the window was bound.
struct WindowStats {
    std::uint64_t bytes_read = 0;
    std::uint64_t loads = 0;         // layers read whole
    std::uint64_t failed_loads = 0;  // given up for an error
    std::uint64_t hits = 0;          // leases of streamed layers that were there when they were asked for
    std::uint64_t stalls = 0;        // those that had to be waited for
    std::uint64_t stall_ns = 0;      // time waited, by all threads
    std::uint64_t reading_ns = 0;    // time in which at least one lane was reading
};

class TensorWindow {
public:
    TensorWindow() = default;
    ~TensorWindow() { unbind(); }
    TensorWindow(const TensorWindow&) = delete;
    TensorWindow& operator=(const TensorWindow&) = delete;

    // A layer's packed block, valid while the lease lives. Take one at a time: who waits for a layer while holding another may
    // wait for itself.
    class Lease {
    public:
        ~Lease() {
            if (window_ != nullptr) window_->release(slot_);
        }
        Lease(Lease&& other) noexcept
            : window_(std::exchange(other.window_, nullptr)), slot_(other.slot_), packed_(other.packed_) {}
        Lease& operator=(Lease&&) = delete;
        const std::byte* packed() const { return packed_; }

    private:
        friend class TensorWindow;
        explicit Lease(const std::byte* packed) : packed_(packed) {}
        Lease(TensorWindow& window, std::size_t slot, const std::byte* packed)
            : window_(&window), slot_(slot), packed_(packed) {}

        TensorWindow* window_ = nullptr;  // nullptr: a layer that stays
        std::size_t slot_ = 0;
        const std::byte* packed_;
    };

    // Before bind(): appends layers that are visited in a cycle, in this order; returns the index of the first.
    std::size_t add_cycle(const std::vector<std::vector<WindowPart>>& layers);

    // What a budget comes to, with what stays besides the layers, and with tables that may stay. Errors of plan_window().
    WindowPlan plan(std::size_t fixed_bytes, const WindowOptions& options, std::size_t table_bytes = 0) const;

    // Reads and checks every layer, keeps those that the plan keeps, and starts the lanes where some pass through. From here on
    // nothing is allocated. Errors of the reader and of PartPacker::check(); Error{unavailable} where the system grants no
    // thread.
    void bind(std::unique_ptr<const ByteReader> reader, WindowPlan plan);
    // Waits for every lease, lets the lanes finish what they are reading, and gives everything back. Whoever waits for a layer
    // gets Error{unavailable}. Nothing where nothing is bound.
    void unbind();

    const WindowPlan& bound_plan() const { return plan_; }
    WindowStats stats() const;
    // Bytes of the file that one visit of all layers of the cycle with this first layer reads, at most.
    std::uint64_t streamed_file_bytes(std::size_t first_layer, std::size_t layers) const;

    // A layer that stays: at once. Another: resolve finds its slot or starts to fill one; settle waits until that is done;
    // publish turns the wait into a lease and looks ahead. Error of the reader where the load has failed: every waiter gets it,
    // and the next call tries again. Error{unavailable} in a fork of the process that bound the window.
    Lease acquire(std::size_t layer) {
        if (const std::byte* packed = resident_[layer]) return Lease(packed);
        return acquire_streamed(layer);
    }

private:
    using Lock = std::unique_lock<std::mutex>;
    static constexpr std::size_t lanes = 2;

    // Apart from the window: a fork of the process must leave it alone, since its waiters are gone.
    struct Signals {
        std::mutex mutex;
        std::condition_variable work;     // for the lanes
        std::condition_variable changed;  // for steps: a load has settled, or a slot may have become free
    };

    void load_resident(std::size_t layer, std::byte* room);
    void start_lanes();
    void run_lane(std::byte* room);
    // A lane begins, or has ended, to read; under the mutex.
    void begin_reading();
    void end_reading();
    // nullptr where it went well.
    std::unique_ptr<const Error> read_chunk(const WindowChunk& chunk, std::size_t slot, std::byte* room);
    Lease acquire_streamed(std::size_t layer);
    std::size_t resolve(std::size_t layer, Lock& lock);
    void settle(std::size_t slot, Lock& lock);
    Lease publish(std::size_t slot);
    void release(std::size_t slot);
    void look_ahead(std::size_t layer);
    std::byte* slot_memory(std::size_t slot) { return reinterpret_cast<std::byte*>(slot_memory_[slot].data()); }
    std::size_t largest_chunk_bytes() const;

    std::vector<std::vector<WindowPart>> parts_;  // until bound
    std::vector<std::vector<WindowChunk>> chunks_;
    std::vector<std::size_t> layer_bytes_;
    std::vector<std::size_t> cycle_starts_;
    std::vector<const std::byte*> resident_;  // nullptr: passes through
    std::vector<AlignedBuffer> memory_;       // of the layers that stay
    std::unique_ptr<const ByteReader> reader_;
    WindowPlan plan_;

    int process_ = 0;
    std::vector<AlignedBuffer> slot_memory_;
    std::array<AlignedBuffer, lanes> staging_;
    std::vector<std::thread> threads_;
    std::unique_ptr<Signals> signals_;
    // Guarded by the mutex.
    SlotTable slots_{0, 0};
    VisitOrder order_{0};
    std::size_t waiting_for_slot_ = 0;
    std::size_t last_visited_ = 0;
    std::size_t reading_lanes_ = 0;
    std::chrono::steady_clock::time_point reading_since_;
    bool closing_ = false;
    WindowStats stats_;
};

}  // namespace mimi
