// A language session as bytes, and back.
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/finite.h"
#include "lm/language_session.h"

namespace mimi {

namespace {

class Writer {
public:
    template <class Value>
    void value(Value value) {
        static_assert(std::is_arithmetic_v<Value>);
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    template <class Value>
    void values(const Value* values, std::size_t count) {
        value<std::uint64_t>(count);
        bytes_.append(reinterpret_cast<const char*>(values), count * sizeof(Value));
    }
    std::string take(const std::string& rest) { return std::move(bytes_) + rest; }

private:
    std::string bytes_;
};

class Reader {
public:
    explicit Reader(const std::string& bytes) : bytes_(bytes) {}

    template <class Value>
    Value value(const char* field) {
        Value value;
        std::memcpy(&value, take(sizeof value, field), sizeof value);
        return value;
    }
    template <class Value>
    std::vector<Value> values(const char* field) {
        const auto count = value<std::uint64_t>(field);
        const std::uint64_t most = (bytes_.size() - at_) / sizeof(Value);
        if (count > most) refuse(field, std::to_string(count) + " values", "at most " + std::to_string(most));
        std::vector<Value> values(static_cast<std::size_t>(count));
        const char* stored = take(values.size() * sizeof(Value), field);
        if (!values.empty()) std::memcpy(values.data(), stored, values.size() * sizeof(Value));
        return values;
    }
    std::string rest() const { return bytes_.substr(at_); }

    [[noreturn]] static void refuse(const char* field, std::string found, std::string expected) {
        throw Error(ErrorCode::snapshot, std::string("snapshot ") + field, std::move(found), std::move(expected));
    }

private:
    const char* take(std::size_t size, const char* field) {
        if (size > bytes_.size() - at_) refuse(field, "the end of the snapshot", std::to_string(size) + " bytes");
        const char* taken = bytes_.data() + at_;
        at_ += size;
        return taken;
    }

    const std::string& bytes_;
    std::size_t at_ = 0;
};

void require_count(const char* field, std::size_t found, std::size_t expected) {
    if (found != expected) Reader::refuse(field, std::to_string(found) + " values", std::to_string(expected));
}

Sampling read_sampling(Reader& reader) {
    Sampling sampling;
    const auto generator = reader.value<std::uint8_t>("generator");
    if (generator > static_cast<std::uint8_t>(RandomGenerator::torch_cpu))
        Reader::refuse("generator", std::to_string(generator), "0 or 1");
    sampling.generator = static_cast<RandomGenerator>(generator);
    sampling.seed = reader.value<std::uint64_t>("seed");
    for (TokenSampling* own : {&sampling.text, &sampling.audio}) {
        own->temperature = reader.value<double>("temperature");
        if (!is_temperature(own->temperature))
            Reader::refuse("temperature", std::to_string(own->temperature), "0, or 0.001 .. 1000");
        own->top_k = static_cast<std::size_t>(reader.value<std::uint64_t>("top_k"));
    }
    return sampling;
}

Conditions read_conditions(Reader& reader, const LmGeometry& geometry) {
    Conditions conditions;
    conditions.sum = reader.values<float>("condition sum");
    conditions.cross = reader.values<float>("cross condition");
    const std::size_t dim = geometry.temporal.dim;
    if (!conditions.sum.empty()) require_count("condition sum", conditions.sum.size(), dim);
    conditions.cross_rows = conditions.cross.size() / dim;
    if (conditions.cross.size() % dim != 0 || (conditions.cross_rows > 0) != geometry.cross_attention)
        Reader::refuse("cross condition", std::to_string(conditions.cross.size()) + " values", "rows of the model's width");
    if (conditions.cross_rows > most_condition_rows)
        Reader::refuse("cross condition", std::to_string(conditions.cross_rows) + " rows",
                       "at most " + std::to_string(most_condition_rows));
    if (!all_finite(conditions.sum.data(), conditions.sum.size()) ||
        !all_finite(conditions.cross.data(), conditions.cross.size()))
        Reader::refuse("conditions", "a value that is not finite", "finite values");
    return conditions;
}

std::vector<std::int32_t> read_tokens(Reader& reader, const LmGeometry& geometry, std::size_t count) {
    std::vector<std::int32_t> tokens = reader.values<std::int32_t>("tokens");
    require_count("tokens", tokens.size(), count);
    const std::size_t slots = count / geometry.channels();
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t most = i < slots ? geometry.text_ids() - 1 : geometry.codebook_entries;
        if (tokens[i] < TokenRing::unset || (tokens[i] > 0 && static_cast<std::size_t>(tokens[i]) > most))
            Reader::refuse("tokens", std::to_string(tokens[i]), "-2 .. " + std::to_string(most));
    }
    return tokens;
}

}  // namespace

std::string LanguageSession::save_state() {
    const SessionEntry entry(gate_);
    Writer writer;
    writer.value(static_cast<std::uint8_t>(sampling_.generator));
    writer.value(sampling_.seed);
    for (const TokenSampling* own : {&sampling_.text, &sampling_.audio}) {
        writer.value(own->temperature);
        writer.value<std::uint64_t>(own->top_k);
    }
    writer.values(random_.state().data(), random_.state().size());
    writer.values(conditions_.sum.data(), conditions_.sum.size());
    writer.values(conditions_.cross.data(), conditions_.cross.size());
    writer.values(tokens_.values().data(), tokens_.values().size());
    return writer.take(state_.save());
}

std::unique_ptr<LanguageSession> LanguageSession::restore(std::shared_ptr<const LanguageModel> model,
                                                          const std::string& bytes) {
    Reader reader(bytes);
    const Sampling sampling = read_sampling(reader);
    const auto words = reader.values<std::uint32_t>("generator state");
    require_count("generator state", words.size(), RandomStream::state_words);
    Conditions conditions = read_conditions(reader, model->geometry());
    {
        ScratchPool::Lease scratch(model->scratches());
        const ScratchArena::Mark mark(scratch.arena());
        const StepContext context{model->kernels(), model->pool(), model->scratches(), scratch.arena(), {}, nullptr};
        model->temporal().prepare_keys(context, model->window(), conditions);
    }
    std::unique_ptr<LanguageSession> session(new LanguageSession(model, sampling, std::move(conditions)));
    std::copy(words.begin(), words.end(), session->random_.state().begin());
    if (!RandomStream::is_state(session->random_.state()))
        Reader::refuse("generator state", std::to_string(words.back()) + " numbers used", "at most 624");
    session->tokens_.values() = read_tokens(reader, model->geometry(), session->tokens_.values().size());
    session->state_.load(reader.rest());
    return session;
}

}  // namespace mimi
