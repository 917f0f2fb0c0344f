// mimi::Error becomes the class of codec_core.errors that carries its code.
#include <nanobind/nanobind.h>

#include <exception>
#include <string>

#include "base/error.h"
#include "bindings/bindings.h"

namespace nb = nanobind;

namespace mimi {

namespace {

void translate(const std::exception_ptr& pointer, void*) {
    try {
        std::rethrow_exception(pointer);
    } catch (const Error& error) {
        const nb::object classes = nb::module_::import_("codec_core.errors").attr("error_classes")();
        const std::string code(error_code_name(error.code()));
        const nb::object type = classes[code.c_str()];
        const nb::object value = type(error.subject().c_str(), error.found().c_str(), error.expected().c_str());
        PyErr_SetObject(type.ptr(), value.ptr());
    }
}

}  // namespace

void bind_errors(nb::module_&) {
    nb::register_exception_translator(translate, nullptr);
}

}  // namespace mimi
