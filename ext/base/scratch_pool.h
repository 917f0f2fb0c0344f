// Scratch arenas that wait for their next step. There are as many as were ever in use at once.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/scratch_arena.h"

namespace mimi {

class ScratchPool {
public:
    // One arena for as long as the lease lasts. Only a lease that finds none idle allocates.
    class Lease {
    public:
        explicit Lease(ScratchPool& pool);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        ScratchArena& arena() { return *arena_; }

    private:
        ScratchPool& pool_;
        std::unique_ptr<ScratchArena> arena_;
    };

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<ScratchArena>> idle_;
    std::size_t made_ = 0;
};

}  // namespace mimi
