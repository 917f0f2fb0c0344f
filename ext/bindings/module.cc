#include "bindings/bindings.h"

NB_MODULE(_ext, module) {
    module.doc() = "The C++ engine. Use it through codec_core's classes; only codec_core itself imports this module.";
    mimi::bind_errors(module);
    mimi::bind_gguf_file(module);
    mimi::bind_model_file(module);
    mimi::bind_model(module);
    mimi::bind_measures(module);
    mimi::bind_sessions(module);
    mimi::bind_language(module);
    mimi::bind_kernels(module);
}
