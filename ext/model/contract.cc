#include "model/contract.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "model/tensor_names.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

constexpr std::string_view codec_file_hint =
    "the codec's own file (tensors 'mimi.*'); `mimi convert` makes one from the codec's checkpoint";

[[noreturn]] void refuse(std::string subject, std::string found, std::string expected) {
    throw Error(ErrorCode::model_contract, std::move(subject), std::move(found), std::move(expected));
}

bool has_prefix(const GgufReader& file, std::string_view prefix) {
    return std::any_of(file.tensors().begin(), file.tensors().end(),
                       [prefix](const GgufTensor& tensor) { return tensor.name.starts_with(prefix); });
}

void check_tensor_prefixes(const GgufReader& file) {
    if (has_prefix(file, "mimi.")) return;
    const std::string hint(codec_file_hint);
    if (has_prefix(file, "lm.")) refuse("file", "Moshi's language model (tensors 'lm.*')", hint);
    if (has_prefix(file, "voice.")) refuse("file", "a voice prompt (tensors 'voice.*')", hint);
    refuse("file", file.tensors().empty() ? "no tensors" : "no tensor that starts with 'mimi.'", hint);
}

// Position in file.tensors() of every required tensor; refuses one that two names lead to.
std::vector<std::size_t> claimed_positions(const GgufReader& file, const std::vector<RequiredTensor>& required) {
    std::vector<const RequiredTensor*> owners(file.tensors().size(), nullptr);
    std::vector<std::size_t> positions;
    for (const RequiredTensor& wanted : required) {
        const GgufTensor& tensor = find_required(file, wanted.name);
        const auto position = static_cast<std::size_t>(&tensor - file.tensors().data());
        if (owners[position] != nullptr) {
            refuse("tensor " + quoted(tensor.name),
                   "the short form of both " + quoted(owners[position]->name) + " and " + quoted(wanted.name),
                   "one tensor per short form: convert the original checkpoint with `mimi convert`");
        }
        owners[position] = &wanted;
        positions.push_back(position);
    }
    return positions;
}

void check_nothing_left(const GgufReader& file, const std::vector<std::size_t>& positions) {
    std::vector<bool> claimed(file.tensors().size(), false);
    for (const std::size_t position : positions) claimed[position] = true;
    const auto left = std::find(claimed.begin(), claimed.end(), false);
    if (left == claimed.end()) return;
    const GgufTensor& tensor = file.tensors()[static_cast<std::size_t>(left - claimed.begin())];
    refuse("tensor " + quoted(tensor.name), "a tensor this model has no use for",
           "only the " + std::to_string(positions.size()) + " tensors of its geometry");
}

void check_shape(const RequiredTensor& wanted, const GgufTensor& tensor) {
    if (same_shape(wanted, tensor.dims)) return;
    refuse("tensor " + quoted(wanted.name) + " dims", dims_text(tensor.dims), dims_text(wanted.dims));
}

// The element types one file uses for the families that leave a choice.
struct FamilyTypes {
    TensorType conv;
    TensorType transposed_conv;
    TensorType linear;
    TensorType rvq_projection;
    TensorType codebook;
};

TensorType type_for(TensorRole role, const FamilyTypes& types) {
    switch (role) {
        case TensorRole::conv: return types.conv;
        case TensorRole::transposed_conv: return types.transposed_conv;
        case TensorRole::linear: return types.linear;
        case TensorRole::rvq_projection: return types.rvq_projection;
        case TensorRole::codebook: return types.codebook;
        default: return TensorType::f32;
    }
}

TensorType chosen_type(const GgufReader& file, const std::string& name, std::span<const TensorType> choices) {
    const GgufTensor& tensor = find_required(file, name);
    if (std::find(choices.begin(), choices.end(), tensor.type) != choices.end()) return tensor.type;
    std::string expected(tensor_type_name(choices.front()));
    for (const TensorType& choice : choices.subspan(1))
        expected += (&choice == &choices.back() ? " or " : ", ") + std::string(tensor_type_name(choice));
    refuse("tensor " + quoted(name) + " type", std::string(tensor_type_name(tensor.type)), expected);
}

// The first tensor of a family chooses for it. Beside convs of f16, and only there, the other families may have f16 too.
FamilyTypes family_types(const GgufReader& file) {
    constexpr TensorType plain[] = {TensorType::f32, TensorType::f16};
    constexpr TensorType linear[] = {TensorType::f32, TensorType::q8_0};
    constexpr TensorType linear_beside_f16[] = {TensorType::f32, TensorType::f16, TensorType::q8_0};
    FamilyTypes types{};
    types.conv = chosen_type(file, tensor_names::encoder_conv(tensor_names::first_conv_index) + ".weight", plain);
    const bool half = types.conv == TensorType::f16;
    types.linear = chosen_type(file, tensor_names::transformer_layer("encoder", 0) + ".self_attn.in_projs.0.weight",
                               half ? std::span<const TensorType>(linear_beside_f16) : linear);
    types.rvq_projection = types.linear == TensorType::q8_0 ? TensorType::q8_0 : types.conv;
    types.codebook = half ? chosen_type(file, tensor_names::codebook("rvq_first", 0), plain) : TensorType::f32;
    types.transposed_conv = half ? chosen_type(file, tensor_names::upsample(), plain) : TensorType::f32;
    return types;
}

void check_type(const RequiredTensor& wanted, const GgufTensor& tensor, const FamilyTypes& types) {
    const TensorType expected = type_for(wanted.role, types);
    if (tensor.type == expected) return;
    refuse("tensor " + quoted(wanted.name) + " type", std::string(tensor_type_name(tensor.type)),
           std::string(tensor_type_name(expected)) + " beside the types of the other tensors");
}

std::string class_of(const FamilyTypes& types) {
    if (types.linear == TensorType::q8_0) return "q8_0";
    return types.conv == TensorType::f16 ? "f16" : "f32";
}

void check_declared_class(const GgufReader& file, const std::string& weight_class) {
    constexpr std::string_view key = "moshi.mimi.weight_class";
    const std::optional<std::string> declared = file.text(key);
    if (!declared || *declared == weight_class) return;
    refuse("key " + quoted(key), quoted(*declared), quoted(weight_class) + ", as the tensors' types say");
}

}  // namespace

void check_component(const GgufReader& file) {
    const std::uint64_t parts = file.unsigned_integer("split.count").value_or(1);
    if (parts > 1) {
        refuse("key 'split.count'", "one of " + std::to_string(parts) + " parts", "one whole file: merge the parts first");
    }
    const std::string architecture = file.text("general.architecture").value_or("moshi");
    if (architecture != "moshi") refuse("key 'general.architecture'", quoted(architecture), "'moshi'");
    const std::string component = file.text("moshi.component").value_or("mimi");
    if (component != "mimi") {
        refuse("key 'moshi.component'", quoted(component), "'mimi', " + std::string(codec_file_hint));
    }
    check_tensor_prefixes(file);
}

const GgufTensor& find_required(const GgufReader& file, const std::string& name) {
    if (const GgufTensor* tensor = file.find(name)) return *tensor;
    const std::string mangled = mangled_name(name);
    const GgufTensor* tensor = mangled == name ? nullptr : file.find(mangled);
    if (tensor == nullptr) {
        refuse("tensor " + quoted(name), "no such tensor",
               mangled == name ? "every tensor of a Mimi model" : "it or its short form " + quoted(mangled));
    }
    return *tensor;
}

std::string check_contract(const GgufReader& file, const Geometry& geometry) {
    check_component(file);
    default_numerics(file);
    const std::vector<RequiredTensor> required = required_tensors(geometry);
    const std::vector<std::size_t> positions = claimed_positions(file, required);
    check_nothing_left(file, positions);
    const FamilyTypes types = family_types(file);
    for (std::size_t i = 0; i < required.size(); ++i) {
        const GgufTensor& tensor = file.tensors()[positions[i]];
        check_shape(required[i], tensor);
        check_type(required[i], tensor, types);
    }
    std::string weight_class = class_of(types);
    check_declared_class(file, weight_class);
    return weight_class;
}

std::vector<std::string> restored_names(const GgufReader& file, const Geometry& geometry) {
    const std::vector<RequiredTensor> required = required_tensors(geometry);
    const std::vector<std::size_t> positions = claimed_positions(file, required);
    std::vector<std::string> names(file.tensors().size());
    for (std::size_t i = 0; i < required.size(); ++i) names[positions[i]] = required[i].name;
    return names;
}

std::string default_numerics(const GgufReader& file) {
    constexpr std::string_view key = "moshi.mimi.numerics";
    if (file.metadata().empty()) return "ggml";
    std::string numerics = file.text(key).value_or("kyutai");
    if (numerics != "kyutai" && numerics != "ggml") refuse("key " + quoted(key), quoted(numerics), "'kyutai' or 'ggml'");
    return numerics;
}

std::string dims_text(const std::vector<std::uint64_t>& dims) {
    std::string text = "(";
    for (std::size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
    return text + ")";
}

}  // namespace mimi
