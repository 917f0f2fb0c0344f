// What Python cannot see of the tensor window: threads, faults in the middle of a load, allocations. Built and run by
// tests/ext/weights/run_tensor_window; prints what it ran, ends with 1 at the first expectation that does not hold.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/ext/weights/tensor_window_fixture.h"
#include "tests/ext/weights/window_plan_cases.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<long> allocations{0};

}  // namespace

void* operator new(std::size_t size) {
    if (counting) ++allocations;
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace mimi {

namespace {

void test_cycles_with_every_number_of_slots() {
    for (std::size_t slots = 1; slots <= 8; ++slots) {
        for (std::size_t residents : {std::size_t{0}, std::size_t{3}}) {
            Fixture fixture(9, 5);
            fixture.bind(slots, residents);
            const std::uint64_t streamed = 14 - residents;
            for (int round = 0; round < 6; ++round)
                for (std::size_t layer = 0; layer < 14; ++layer) fixture.visit(layer);
            const WindowStats stats = fixture.window.stats();
            require(stats.hits + stats.stalls == 6 * streamed, "one lease a visit");
            // Both ends mislead once, until it is learnt what follows; and the last visit looks ahead.
            require(stats.loads <= 6 * streamed + 3 * slots, "a layer is read once a round");
        }
    }
}

void test_layers_longer_than_a_chunk() {
    for (std::size_t slots = 1; slots <= 2; ++slots) {
        Fixture fixture(5, 1, true);
        fixture.bind(slots);
        for (std::size_t layer = 0; layer < 6; ++layer) fixture.visit(layer);
    }
}

void test_one_cycle_wraps() {
    for (std::size_t slots = 1; slots <= 6; ++slots) {
        Fixture fixture(7, 2);
        fixture.bind(slots);
        for (int round = 0; round < 5; ++round)
            for (std::size_t layer = 0; layer < 7; ++layer) fixture.visit(layer);
        require(fixture.window.stats().loads <= 5 * 7 + slots, "read-ahead past the end begins at the start");
    }
}

void test_reading_ahead_fills_every_slot_but_the_published_one() {
    Fixture fixture(9, 0);
    fixture.bind(4);
    const TensorWindow::Lease lease = fixture.window.acquire(2);
    wait_until([&] { return fixture.window.stats().loads == 4; });
    require(fixture.is_right(2, lease.packed()), "the published slot is left alone");
    for (std::size_t layer = 3; layer <= 5; ++layer) fixture.visit(layer);
    const WindowStats stats = fixture.window.stats();
    require(stats.hits == 3 && stats.stalls == 1, "what was read ahead is there");
}

void test_a_lease_outlives_other_visits() {
    Fixture fixture(9, 5);
    fixture.bind(2);
    const TensorWindow::Lease lease = fixture.window.acquire(0);
    for (int round = 0; round < 3; ++round)
        for (std::size_t layer = 9; layer < 14; ++layer) fixture.visit(layer);
    require(fixture.is_right(0, lease.packed()), "a leased layer stays");
}

void test_random_access_by_many_threads() {
    for (std::size_t slots : {std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
        Fixture fixture(9, 5);
        fixture.bind(slots, 1);
        run_in_threads(4, [&](std::size_t thread) {
            std::mt19937 random(static_cast<unsigned>(thread));
            for (int i = 0; i < 150; ++i) fixture.visit(random() % 14);
        });
    }
}

void test_both_cycles_at_once_with_few_slots() {
    for (std::size_t slots = 1; slots <= 3; ++slots) {
        Fixture fixture(9, 5);
        fixture.bind(slots);
        run_in_threads(4, [&](std::size_t thread) {
            for (int round = 0; round < 12; ++round)
                for (std::size_t layer = thread % 2 ? 0 : 9; layer < (thread % 2 ? 9u : 14u); ++layer) fixture.visit(layer);
        });
    }
}

void test_waiters_join_one_load() {
    Fixture fixture(9, 0);
    fixture.bind(1);
    fixture.reader.shut();
    const long before = fixture.reader.reads();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { fixture.visit(5); });
    wait_until([&] { return fixture.reader.reads() == before + 2; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    fixture.reader.open();
    for (std::thread& thread : threads) thread.join();
    const WindowStats stats = fixture.window.stats();
    require(stats.stalls + stats.hits == 4, "four leases");
    require(stats.loads <= 2, "of one load, and at most one ahead");
}

void test_a_fault_reaches_every_waiter_and_the_next_attempt_succeeds() {
    for (std::size_t slots = 1; slots <= 3; ++slots) {
        Fixture fixture(9, 0);
        fixture.bind(slots);
        fixture.reader.shut();
        const long before = fixture.reader.reads();
        std::atomic<int> refused{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i)
            threads.emplace_back([&] { refused += code_of([&] { fixture.visit(5); }) == ErrorCode::model_access; });
        wait_until([&] { return fixture.reader.reads() >= before + 2; });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        fixture.reader.fail_next(2);
        fixture.reader.open();
        for (std::thread& thread : threads) thread.join();
        require(refused == 3, "every waiter is told");
        require(fixture.window.stats().failed_loads >= 1, "failures are counted");
        fixture.reader.fail_next(0);
        for (std::size_t layer = 0; layer < 9; ++layer) fixture.visit(layer);
    }
}

void test_faults_at_random() {
    Fixture fixture(9, 5);
    fixture.bind(3);
    run_in_threads(3, [&](std::size_t thread) {
        std::mt19937 random(static_cast<unsigned>(thread + 10));
        for (int i = 0; i < 120; ++i) {
            if (random() % 8 == 0) fixture.reader.fail_next(1 + static_cast<int>(random() % 3));
            try {
                fixture.visit(random() % 14);
            } catch (const Error& error) {
                require(error.code() == ErrorCode::model_access, "the reader's own error");
            }
        }
    });
    fixture.reader.fail_next(0);
    for (std::size_t layer = 0; layer < 14; ++layer) fixture.visit(layer);
}

void test_a_fault_while_binding() {
    Fixture fixture(9, 5);
    fixture.reader.fail_next(1);
    require(code_of([&] { fixture.bind(2); }) == ErrorCode::model_access, "refused where it is opened");
}

void test_closing_during_loads() {
    for (int i = 0; i < 20; ++i) {
        Fixture fixture(9, 5);
        fixture.bind(4);
        fixture.visit(static_cast<std::size_t>(i) % 14);
        fixture.window.unbind();
    }
}

void test_closing_wakes_who_waits() {
    Fixture fixture(9, 5);
    fixture.bind(1);
    fixture.reader.shut();
    const long before = fixture.reader.reads();
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (std::size_t layer : {std::size_t{1}, std::size_t{1}, std::size_t{10}})
        threads.emplace_back([&, layer] { refused += code_of([&] { fixture.visit(layer); }) == ErrorCode::unavailable; });
    wait_until([&] { return fixture.reader.reads() == before + 2; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::thread closer([&] { fixture.window.unbind(); });
    wait_until([&] { return refused == 3; });
    fixture.reader.open();
    closer.join();
    for (std::thread& thread : threads) thread.join();
}

void test_closing_waits_for_leases() {
    Fixture fixture(9, 5);
    fixture.bind(2);
    std::atomic<bool> held{true};
    std::atomic<bool> leased{false};
    std::thread holder([&] {
        const TensorWindow::Lease lease = fixture.window.acquire(3);
        leased = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        require(fixture.is_right(3, lease.packed()), "a lease holds while the window is closed");
        held = false;
    });
    wait_until([&] { return leased.load(); });
    fixture.window.unbind();
    require(!held, "closed after the lease");
    holder.join();
}

void test_nothing_is_allocated_once_bound() {
    Fixture fixture(9, 5);
    fixture.bind(3, 2);
    for (std::size_t layer = 0; layer < 14; ++layer) fixture.visit(layer);
    allocations = 0;
    counting = true;
    for (int round = 0; round < 3; ++round)
        for (std::size_t layer = 0; layer < 14; ++layer) fixture.visit(layer);
    counting = false;
    require(allocations == 0, "no allocation");
}

void test_the_order_of_alternating_cycles_is_learnt() {
    VisitOrder order(7);
    order.add_cycle({0, 2, 3});
    order.add_cycle({5, 6});
    require(order.after(3) == 0 && order.after(6) == 5, "at first each follows itself");
    for (int round = 0; round < 2; ++round)
        for (std::size_t layer : {0, 2, 3, 5, 6}) order.visit(layer);
    require(order.after(3) == 5 && order.after(6) == 0 && order.after(0) == 2, "then as it went");
    order.visit(5);
    require(order.after(3) == 0, "a cycle under way is left to who runs it");
    order.visit(6);
    order.visit(5);
    order.visit(6);
    require(order.after(6) == 5, "one cycle over and over");
}

}  // namespace

}  // namespace mimi

int main() {
    const std::pair<const char*, void (*)()> tests[] = {
        {"cycles with every number of slots", mimi::test_cycles_with_every_number_of_slots},
        {"layers longer than a chunk", mimi::test_layers_longer_than_a_chunk},
        {"one cycle wraps", mimi::test_one_cycle_wraps},
        {"reading ahead fills every slot but the published one",
         mimi::test_reading_ahead_fills_every_slot_but_the_published_one},
        {"a lease outlives other visits", mimi::test_a_lease_outlives_other_visits},
        {"random access by many threads", mimi::test_random_access_by_many_threads},
        {"both cycles at once with few slots", mimi::test_both_cycles_at_once_with_few_slots},
        {"waiters join one load", mimi::test_waiters_join_one_load},
        {"a fault reaches every waiter", mimi::test_a_fault_reaches_every_waiter_and_the_next_attempt_succeeds},
        {"faults at random", mimi::test_faults_at_random},
        {"a fault while binding", mimi::test_a_fault_while_binding},
        {"closing during loads", mimi::test_closing_during_loads},
        {"closing wakes who waits", mimi::test_closing_wakes_who_waits},
        {"closing waits for leases", mimi::test_closing_waits_for_leases},
        {"nothing is allocated once bound", mimi::test_nothing_is_allocated_once_bound},
        {"the order of alternating cycles is learnt", mimi::test_the_order_of_alternating_cycles_is_learnt},
        {"plans", mimi::test_plans},
        {"plans with tables", mimi::test_plans_with_tables},
        {"plans of unequal layers", mimi::test_plans_of_unequal_layers},
    };
    for (const auto& [name, test] : tests) {
        std::printf("%s\n", name);
        std::fflush(stdout);
        test();
    }
    return 0;
}
