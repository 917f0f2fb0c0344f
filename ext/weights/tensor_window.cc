#include "weights/tensor_window.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace mimi {

namespace {

std::size_t floats_for(std::size_t bytes) {
    return (bytes + sizeof(float) - 1) / sizeof(float);
}

AlignedBuffer staging_buffer(std::size_t chunk) {
    return AlignedBuffer(floats_for(ByteReader::room_bytes(chunk) + direct_alignment_bytes));
}

std::byte* staging_room(AlignedBuffer& buffer) {
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    const std::uintptr_t aligned = (address + direct_alignment_bytes - 1) / direct_alignment_bytes * direct_alignment_bytes;
    return reinterpret_cast<std::byte*>(buffer.data()) + (aligned - address);
}

// One that shares nothing with the original, which another thread may be looking at.
Error copy_of(const Error& error) {
    return {error.code(), error.subject(), error.found(), error.expected()};
}

std::uint64_t nanoseconds_since(std::chrono::steady_clock::time_point start) {
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
    return static_cast<std::uint64_t>(taken.count());
}

Error closed() {
    return {ErrorCode::unavailable, "tensor window", "closed while a layer was waited for", "an open model"};
}

}  // namespace

std::size_t TensorWindow::add_cycle(const std::vector<std::vector<WindowPart>>& layers) {
    const std::size_t first = parts_.size();
    cycle_starts_.push_back(first);
    for (const std::vector<WindowPart>& parts : layers) {
        parts_.push_back(parts);
        chunks_.push_back(cut_into_chunks(parts));
        layer_bytes_.push_back(packed_layer_bytes(parts));
    }
    return first;
}

std::size_t TensorWindow::largest_chunk_bytes() const {
    std::size_t most = 0;
    for (const std::vector<WindowChunk>& chunks : chunks_)
        for (const WindowChunk& chunk : chunks) most = std::max(most, chunk.size_bytes);
    return most;
}

WindowPlan TensorWindow::plan(std::size_t fixed_bytes, const WindowOptions& options, std::size_t table_bytes) const {
    return plan_window({.fixed_bytes = fixed_bytes,
                        .staging_bytes = lanes * (ByteReader::room_bytes(largest_chunk_bytes()) + direct_alignment_bytes),
                        .layer_bytes = layer_bytes_,
                        .table_bytes = table_bytes},
                       options);
}

void TensorWindow::bind(std::unique_ptr<const ByteReader> reader, WindowPlan plan) {
    plan_ = std::move(plan);
    reader_ = std::move(reader);
    resident_.assign(chunks_.size(), nullptr);
    memory_.resize(chunks_.size());
    for (AlignedBuffer& buffer : staging_) buffer = staging_buffer(largest_chunk_bytes());
    for (std::size_t layer = 0; layer < chunks_.size(); ++layer) load_resident(layer, staging_room(staging_[0]));
    parts_.clear();
    if (plan_.streams()) {
        start_lanes();
    } else {
        for (AlignedBuffer& buffer : staging_) buffer = AlignedBuffer();
        reader_.reset();
    }
}

// Every layer is checked, whether it stays or not: a file is refused when it is opened, not when it is used.
void TensorWindow::load_resident(std::size_t layer, std::byte* room) {
    const bool stays = plan_.resident[layer];
    if (stays) memory_[layer] = AlignedBuffer(floats_for(layer_bytes_[layer]));
    auto* memory = reinterpret_cast<std::byte*>(memory_[layer].data());
    auto part = parts_[layer].begin();
    for (const WindowChunk& chunk : chunks_[layer]) {
        if (chunk.offset_bytes - chunk.start_bytes != part->tensor->offset_bytes) ++part;
        const std::byte* stored = reader_->read(chunk.offset_bytes, chunk.size_bytes, room);
        chunk.packer->check(*part->tensor, stored, chunk.start_bytes, chunk.size_bytes);
        if (stays) chunk.packer->pack(stored, chunk.start_bytes, chunk.size_bytes, memory + chunk.packed_offset_bytes);
    }
    resident_[layer] = memory;
}

void TensorWindow::start_lanes() {
    process_ = ::getpid();
    slots_ = SlotTable(plan_.slots, chunks_.size());
    order_ = VisitOrder(chunks_.size());
    for (std::size_t i = 0; i < cycle_starts_.size(); ++i) {
        const std::size_t end = i + 1 < cycle_starts_.size() ? cycle_starts_[i + 1] : chunks_.size();
        std::vector<std::size_t> streamed;
        for (std::size_t layer = cycle_starts_[i]; layer < end; ++layer)
            if (!plan_.resident[layer]) streamed.push_back(layer);
        order_.add_cycle(streamed);
    }
    for (std::size_t i = 0; i < plan_.slots; ++i) slot_memory_.emplace_back(floats_for(plan_.slot_bytes));
    closing_ = false;
    signals_ = std::make_unique<Signals>();
    try {
        for (AlignedBuffer& buffer : staging_) threads_.emplace_back([this, &buffer] { run_lane(staging_room(buffer)); });
    } catch (const std::system_error&) {
        const std::string granted = std::to_string(threads_.size());
        unbind();
        throw Error(ErrorCode::unavailable, "threads of the tensor window", "a system that grants " + granted,
                    std::to_string(lanes));
    }
}

void TensorWindow::unbind() {
    if (!signals_) return;
    if (::getpid() != process_) {
        for (std::thread& thread : threads_) thread.detach();
        static_cast<void>(signals_.release());
    } else {
        Lock lock(signals_->mutex);
        closing_ = true;
        signals_->work.notify_all();
        signals_->changed.notify_all();
        signals_->changed.wait(lock, [this] { return slots_.is_idle() && waiting_for_slot_ == 0; });
        lock.unlock();
        for (std::thread& thread : threads_) thread.join();
        signals_.reset();
    }
    threads_.clear();
    slot_memory_.clear();
    reader_.reset();
}

void TensorWindow::run_lane(std::byte* room) {
    Lock lock(signals_->mutex);
    for (;;) {
        std::size_t slot = SlotTable::none;
        signals_->work.wait(lock, [&] {
            slot = slots_.next_to_read();
            return closing_ || slot != SlotTable::none;
        });
        if (closing_) return;
        SlotTable::Slot& taken = slots_.at(slot);
        const std::size_t layer = taken.layer;
        const WindowChunk& chunk = chunks_[layer][taken.next_chunk++];
        ++taken.chunks_in_flight;
        begin_reading();
        lock.unlock();
        std::unique_ptr<const Error> failure = read_chunk(chunk, slot, room);
        lock.lock();
        end_reading();
        stats_.bytes_read += failure ? 0 : chunk.size_bytes;
        const bool failed = failure != nullptr || taken.failure != nullptr;
        if (slots_.finish_chunk(slot, std::move(failure))) {
            ++(failed ? stats_.failed_loads : stats_.loads);
            signals_->changed.notify_all();
        }
        if (closing_) signals_->changed.notify_all();
    }
}

void TensorWindow::begin_reading() {
    if (reading_lanes_++ == 0) reading_since_ = std::chrono::steady_clock::now();
}

void TensorWindow::end_reading() {
    if (--reading_lanes_ > 0) return;
    stats_.reading_ns += nanoseconds_since(reading_since_);
}

std::unique_ptr<const Error> TensorWindow::read_chunk(const WindowChunk& chunk, std::size_t slot, std::byte* room) {
    try {
        const std::byte* stored = reader_->read(chunk.offset_bytes, chunk.size_bytes, room);
        chunk.packer->pack(stored, chunk.start_bytes, chunk.size_bytes, slot_memory(slot) + chunk.packed_offset_bytes);
        return nullptr;
    } catch (const Error& error) {
        return std::make_unique<const Error>(copy_of(error));
    } catch (const std::exception& error) {
        return std::make_unique<const Error>(ErrorCode::internal, "tensor window", error.what(),
                                             "a layer that is read and packed");
    }
}

TensorWindow::Lease TensorWindow::acquire_streamed(std::size_t layer) {
    if (::getpid() != process_)
        throw Error(ErrorCode::unavailable, "tensor window", "a fork of the process that opened the model",
                    "a model opened in this process");
    Lock lock(signals_->mutex);
    const std::size_t found = slots_.slot_of(layer);
    const bool hit = found != SlotTable::none && slots_.at(found).state == SlotTable::State::ready;
    const auto asked = std::chrono::steady_clock::now();
    const std::size_t slot = resolve(layer, lock);
    settle(slot, lock);
    ++(hit ? stats_.hits : stats_.stalls);
    if (!hit) stats_.stall_ns += nanoseconds_since(asked);
    return publish(slot);
}

std::size_t TensorWindow::resolve(std::size_t layer, Lock& lock) {
    for (;;) {
        if (closing_) throw closed();
        std::size_t slot = slots_.slot_of(layer);
        if (slot == SlotTable::none) {
            slot = slots_.victim_for_step();
            if (slot != SlotTable::none) {
                slots_.begin_load(slot, layer, chunks_[layer].size());
                signals_->work.notify_all();
            }
        }
        if (slot != SlotTable::none) {
            ++slots_.at(slot).joined;
            return slot;
        }
        ++waiting_for_slot_;
        signals_->changed.wait(lock);
        --waiting_for_slot_;
        if (closing_) signals_->changed.notify_all();
    }
}

void TensorWindow::settle(std::size_t index, Lock& lock) {
    SlotTable::Slot& slot = slots_.at(index);
    signals_->changed.wait(lock, [&] { return closing_ || slot.state != SlotTable::State::loading; });
    if (slot.state == SlotTable::State::ready) return;
    const bool failed = slot.state == SlotTable::State::failed;
    const Error failure = failed ? copy_of(*slot.failure) : closed();
    slots_.leave(index);
    signals_->changed.notify_all();
    throw failure;
}

TensorWindow::Lease TensorWindow::publish(std::size_t slot) {
    slots_.publish(slot);
    last_visited_ = slots_.at(slot).layer;
    order_.visit(last_visited_);
    look_ahead(last_visited_);
    return {*this, slot, slot_memory(slot)};
}

void TensorWindow::release(std::size_t slot) {
    const Lock lock(signals_->mutex);
    if (--slots_.at(slot).leases > 0) return;
    if (waiting_for_slot_ > 0 || closing_)
        signals_->changed.notify_all();
    else
        look_ahead(last_visited_);
}

// Starts to fill what slots it may with the layers that come next, the nearest first.
void TensorWindow::look_ahead(std::size_t layer) {
    if (closing_ || waiting_for_slot_ > 0) return;
    slots_.begin_look_ahead();
    std::size_t next = layer;
    bool begun = false;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        next = order_.after(next);
        std::size_t slot = slots_.slot_of(next);
        if (slot == SlotTable::none) {
            slot = slots_.victim_for_read_ahead(chunks_.size());
            if (slot == SlotTable::none) break;
            slots_.begin_load(slot, next, chunks_[next].size());
            begun = true;
        }
        slots_.mark_wanted(slot);
    }
    if (begun) signals_->work.notify_all();
}

WindowStats TensorWindow::stats() const {
    // In a fork nobody writes them, and nobody may ever let go of the mutex.
    if (!signals_ || ::getpid() != process_) return stats_;
    const Lock lock(signals_->mutex);
    WindowStats now = stats_;
    if (reading_lanes_ > 0) now.reading_ns += nanoseconds_since(reading_since_);
    return now;
}

std::uint64_t TensorWindow::streamed_file_bytes(std::size_t first_layer, std::size_t layers) const {
    std::uint64_t bytes = 0;
    for (std::size_t layer = first_layer; layer < first_layer + layers; ++layer)
        if (resident_[layer] == nullptr)
            for (const WindowChunk& chunk : chunks_[layer]) bytes += chunk.size_bytes;
    return bytes;
}

}  // namespace mimi
