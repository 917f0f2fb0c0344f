// A small pool that splits independent pieces of one job over threads. A worker that has just worked looks out for the next job
// for some microseconds, since a step is many short jobs in a row, and then sleeps: an idle pool costs nothing. Nobody waits
// for a worker that has not yet woken, and a caller that finds the pool taken runs its own job alone. Which thread computes a
// piece never shows in a result.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace mimi {

constexpr std::size_t max_threads = 256;

// The number itself; Error{setting} outside 1 .. max_threads.
std::size_t checked_threads(std::size_t threads);

class ThreadPool {
public:
    // `threads` counts the caller, so 1 means no worker at all. Error{unavailable} where the system grants no such number.
    explicit ThreadPool(std::size_t threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    std::size_t threads() const { return workers_.size() + 1; }

    // The pool without workers, for what runs inside a piece.
    static ThreadPool& none();

    // Calls function(i) for every i < pieces and returns when all are done; rethrows the first exception.
    template <class Function>
    void run(std::size_t pieces, const Function& function) {
        run_pieces(pieces, [](const void* context, std::size_t i) { (*static_cast<const Function*>(context))(i); }, &function);
    }

    // Calls function(begin, end) for as many neighbouring ranges of 0 .. count - 1 as there are threads, none of them empty.
    template <class Function>
    void run_ranges(std::size_t count, const Function& function) {
        const std::size_t pieces = count < threads() ? count : threads();
        run(pieces, [&](std::size_t piece) { function(count * piece / pieces, count * (piece + 1) / pieces); });
    }

private:
    using Piece = void (*)(const void* context, std::size_t index);

    void run_pieces(std::size_t pieces, Piece piece, const void* context);
    void publish(std::size_t pieces, Piece piece, const void* context);
    void stop();
    // Whether this process is a fork of the one that has the workers; it runs its jobs alone.
    bool workers_left_behind() const;
    void work();
    void take_pieces();

    const int process_;
    std::vector<std::thread> workers_;
    std::mutex job_mutex_;  // held by the caller whose job the workers share
    std::mutex mutex_;      // guards what follows
    std::condition_variable wake_;
    std::condition_variable done_;
    bool open_ = false;  // whether workers may still join the job
    std::exception_ptr failure_;
    Piece piece_ = nullptr;
    const void* context_ = nullptr;
    std::size_t pieces_ = 0;
    // Written under the mutex; looked at without it by those who wait awake.
    std::atomic<std::uint64_t> generation_{0};
    std::atomic<std::size_t> busy_workers_{0};
    std::atomic<bool> stopping_{false};
    std::atomic<std::size_t> next_{0};
};

}  // namespace mimi
