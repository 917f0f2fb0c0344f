// Runs a model on a clip and writes every stage of every frame, for comparison with golden vectors:
//   dump_stages MODEL NUMERICS LEVELS FRAMES < (float pcm[FRAMES][1920], int32 codes[FRAMES][LEVELS]) > stages
// A stage is its name, a newline, uint32 rows, uint32 channels and the floats; a line "end" follows each frame.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "codec/session.h"

namespace {

class Writer : public mimi::StageObserver {
public:
    void stage(const char* name, const mimi::Activations& activations) override {
        const std::uint32_t shape[] = {static_cast<std::uint32_t>(activations.rows),
                                       static_cast<std::uint32_t>(activations.channels)};
        std::printf("%s\n", name);
        std::fwrite(shape, sizeof shape, 1, stdout);
        std::fwrite(activations.row(0, 0), sizeof(float), activations.row_floats(), stdout);
    }
};

template <class Value>
std::vector<Value> read_input(std::size_t count) {
    std::vector<Value> values(count);
    if (std::fread(values.data(), sizeof(Value), count, stdin) != count) std::exit(2);
    return values;
}

void run(const std::string& path, const std::string& numerics, std::size_t levels, std::size_t frames) {
    const auto model = mimi::CodecModel::open(path, {.numerics = numerics, .isa = "scalar", .threads = 2});
    const std::size_t samples = model->geometry().frame_samples;
    const std::vector<float> pcm = read_input<float>(frames * samples);
    const std::vector<std::int32_t> codes = read_input<std::int32_t>(frames * levels);
    mimi::EncoderSession encoder(model, levels);
    mimi::DecoderSession decoder(model, levels);
    mimi::EncoderSession* const encoders[] = {&encoder};
    mimi::DecoderSession* const decoders[] = {&decoder};
    std::vector<std::int32_t> found(levels);
    std::vector<float> sound(samples);
    Writer writer;
    for (std::size_t frame = 0; frame < frames; ++frame) {
        const float* const in = pcm.data() + frame * samples;
        float* const out = sound.data();
        mimi::encode_batch(encoders, &in, found.data(), &writer);
        mimi::decode_batch(decoders, codes.data() + frame * levels, &out, &writer);
        std::puts("end");
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) return 2;
    try {
        run(arguments[1], arguments[2], std::strtoul(arguments[3], nullptr, 10), std::strtoul(arguments[4], nullptr, 10));
    } catch (const mimi::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
