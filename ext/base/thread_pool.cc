#include "base/thread_pool.h"

#include <unistd.h>

#include <string>
#include <system_error>

#include "base/error.h"

namespace mimi {

ThreadPool::ThreadPool(std::size_t threads) : process_(getpid()) {
    try {
        workers_.reserve(threads - 1);
        for (std::size_t i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
        stop();
        throw Error(ErrorCode::unavailable, "threads", "a system that grants " + std::to_string(workers_.size() + 1),
                    std::to_string(threads));
    }
}

ThreadPool::~ThreadPool() {
    if (workers_left_behind())
        for (std::thread& worker : workers_) worker.detach();
    else
        stop();
}

bool ThreadPool::workers_left_behind() const {
    return getpid() != process_;
}

void ThreadPool::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_pieces(std::size_t pieces, Piece piece, const void* context) {
    const std::unique_lock job(job_mutex_, std::try_to_lock);
    if (pieces <= 1 || workers_.empty() || !job.owns_lock() || workers_left_behind()) {
        for (std::size_t i = 0; i < pieces; ++i) piece(context, i);
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        piece_ = piece;
        context_ = context;
        pieces_ = pieces;
        next_ = 0;
        failure_ = nullptr;
        busy_workers_ = workers_.size();
        ++generation_;
    }
    wake_.notify_all();
    take_pieces();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_workers_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::work() {
    std::size_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
        if (stopping_) return;
        seen = generation_;
        lock.unlock();
        take_pieces();
        lock.lock();
        if (--busy_workers_ == 0) done_.notify_one();
    }
}

void ThreadPool::take_pieces() {
    for (std::size_t i = next_++; i < pieces_; i = next_++) {
        try {
            piece_(context_, i);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
        }
    }
}

}  // namespace mimi
