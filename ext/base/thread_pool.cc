#include "base/thread_pool.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <system_error>

#include "base/error.h"

namespace mimi {

namespace {

// Long enough for what a step does between two jobs, short enough to be nothing to whoever else wants the core.
constexpr std::chrono::microseconds patience{50};

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

// Waits awake until the condition holds, but not for long; whether it then holds is for the caller to see.
template <class Condition>
void watch_for(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!condition() && std::chrono::steady_clock::now() < end)
        for (int i = 0; i < 16 && !condition(); ++i) relax();
}

}  // namespace

std::size_t checked_threads(std::size_t threads) {
    if (threads < 1 || threads > max_threads)
        throw Error(ErrorCode::setting, "threads", std::to_string(threads), "1 .. " + std::to_string(max_threads));
    return threads;
}

ThreadPool& ThreadPool::none() {
    static ThreadPool pool(1);
    return pool;
}

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
    std::unique_lock<std::mutex> job;
    if (pieces > 1 && !workers_.empty() && !workers_left_behind()) job = std::unique_lock(job_mutex_, std::try_to_lock);
    if (!job.owns_lock()) {
        for (std::size_t i = 0; i < pieces; ++i) piece(context, i);
        return;
    }
    publish(pieces, piece, context);
    wake_.notify_all();
    take_pieces();
    std::unique_lock lock(mutex_);
    open_ = false;
    lock.unlock();
    watch_for([this] { return busy_workers_.load(std::memory_order_acquire) == 0; });
    lock.lock();
    done_.wait(lock, [this] { return busy_workers_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::publish(std::size_t pieces, Piece piece, const void* context) {
    const std::lock_guard lock(mutex_);
    piece_ = piece;
    context_ = context;
    pieces_ = pieces;
    next_ = 0;
    failure_ = nullptr;
    open_ = true;
    generation_.fetch_add(1, std::memory_order_release);
}

void ThreadPool::work() {
    std::uint64_t seen = 0;
    for (;;) {
        const auto called = [&] { return stopping_ || generation_.load(std::memory_order_acquire) != seen; };
        watch_for(called);
        std::unique_lock lock(mutex_);
        wake_.wait(lock, called);
        if (stopping_) return;
        seen = generation_;
        if (!open_) continue;
        ++busy_workers_;
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
