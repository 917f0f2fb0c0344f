// A small pool that splits independent pieces of one job over threads. Idle workers sleep; a caller that finds the pool taken
// runs its own job alone. Which thread computes a piece never shows in a result.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace mimi {

class ThreadPool {
public:
    // `threads` counts the caller, so 1 means no worker at all. Error{unavailable} where the system grants no such number.
    explicit ThreadPool(std::size_t threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    std::size_t threads() const { return workers_.size() + 1; }

    // Calls function(i) for every i < pieces and returns when all are done; rethrows the first exception.
    template <class Function>
    void run(std::size_t pieces, const Function& function) {
        run_pieces(pieces, [](const void* context, std::size_t i) { (*static_cast<const Function*>(context))(i); }, &function);
    }

private:
    using Piece = void (*)(const void* context, std::size_t index);

    void run_pieces(std::size_t pieces, Piece piece, const void* context);
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
    std::size_t generation_ = 0;
    std::size_t busy_workers_ = 0;
    bool stopping_ = false;
    std::exception_ptr failure_;
    Piece piece_ = nullptr;
    const void* context_ = nullptr;
    std::size_t pieces_ = 0;
    std::atomic<std::size_t> next_{0};
};

}  // namespace mimi
