// What of a model stays in memory under a budget; run by tensor_window_test.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/ext/weights/tensor_window_fixture.h"

namespace mimi {

inline void test_plans() {
    WindowSizes sizes{100, 20, std::vector<std::size_t>(10, 50)};
    require(!plan_window(sizes, {}).streams() && !plan_window(sizes, {600, 0}).streams(), "all stays");
    const WindowPlan nearly = plan_window(sizes, {599, 0});
    require(nearly.slots == 4 && nearly.resident_layers() == 5 && nearly.memory_bytes() <= 599, "just below full");
    const WindowPlan least = plan_window(sizes, {170, 0});
    require(least.minimum_bytes == 170 && least.slots == 1 && least.resident_layers() == 0, "the minimum");
    require(code_of([&] { plan_window(sizes, {169, 0}); }) == ErrorCode::setting, "less is refused");
    require(code_of([&] { plan_window(sizes, {250, 3}); }) == ErrorCode::setting, "more slots than fit are refused");
    sizes.layer_bytes[3] = 70;
    for (std::size_t budget = 190; budget < 620; ++budget)
        require(plan_window(sizes, {budget, 0}).memory_bytes() <= budget, "never more than the budget");
}

inline void test_plans_with_tables() {
    const WindowSizes sizes{100, 20, std::vector<std::size_t>(10, 50), 80};
    require(plan_window(sizes, {}).tables_stay && plan_window(sizes, {680, 0}).memory_bytes() == 680, "all stays");
    for (std::size_t budget : {679, 600}) {
        const WindowPlan plan = plan_window(sizes, {budget, 0});
        require(!plan.tables_stay && !plan.streams() && plan.memory_bytes() == 600, "tables go first");
    }
    const WindowPlan less = plan_window(sizes, {599, 0});
    require(!less.tables_stay && less.slots == 4 && less.full_bytes == 680 && less.minimum_bytes == 170, "then layers");
    require(code_of([&] { plan_window(sizes, {169, 0}); }) == ErrorCode::setting, "less is refused");
    const WindowSizes small{100, 20, {30}, 80};
    require(plan_window(small, {130, 0}).minimum_bytes == 130, "a slot would take more than the layer itself");
}

inline void test_plans_of_unequal_layers() {
    const WindowSizes sizes{0, 0, {100, 10, 100, 10, 100, 10, 100, 10}};
    for (std::size_t budget = 100; budget < 440; ++budget) {
        const WindowPlan plan = plan_window(sizes, {budget, 1});
        const std::size_t left = budget - plan.memory_bytes();
        for (std::size_t i = 0; i < 8; ++i)
            require(plan.resident[i] || sizes.layer_bytes[i] > left, "nothing that fits is left out");
    }
}

}  // namespace mimi
