// One register function per subject; module.cc calls them.
#pragma once

#include <nanobind/nanobind.h>

namespace mimi {

void bind_errors(nanobind::module_& module);
void bind_gguf_file(nanobind::module_& module);
void bind_language(nanobind::module_& module);
void bind_kernels(nanobind::module_& module);
void bind_measures(nanobind::module_& module);
void bind_model(nanobind::module_& module);
void bind_model_file(nanobind::module_& module);
void bind_sessions(nanobind::module_& module);

}  // namespace mimi
