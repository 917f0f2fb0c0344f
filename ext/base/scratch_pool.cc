#include "base/scratch_pool.h"

#include <utility>

namespace mimi {

ScratchPool::Lease::Lease(ScratchPool& pool) : pool_(pool) {
    {
        const std::lock_guard lock(pool_.mutex_);
        if (!pool_.idle_.empty()) {
            arena_ = std::move(pool_.idle_.back());
            pool_.idle_.pop_back();
        }
    }
    if (arena_) return;
    arena_ = std::make_unique<ScratchArena>();
    // Room to hand it back, so that the destructor has no way to fail.
    const std::lock_guard lock(pool_.mutex_);
    pool_.idle_.reserve(++pool_.made_);
}

ScratchPool::Lease::~Lease() {
    const std::lock_guard lock(pool_.mutex_);
    pool_.idle_.push_back(std::move(arena_));
}

}  // namespace mimi
