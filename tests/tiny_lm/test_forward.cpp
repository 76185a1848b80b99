#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "programs/run_program.hpp"
#include "tiny_lm/arms.hpp"
#include "tiny_lm/ngram.hpp"
#include "tiny_lm/random_model.hpp"
#include "tiny_lm/weights_file.hpp"

namespace test_forward {

using namespace tiny_lm;

namespace {

using Real = long double;
using Row = std::vector<Real>;

const std::string folder = PROJECT_FOLDER "/examples/tiny_lm/";

/// The model once more, from its description: plain loops in long double over the file's tensors, one token at a time.
class PlainModel {
  public:
    explicit PlainModel(const std::string& path) : file_(path), keys_(layers), values_(layers) {}

    /// The logits after one more token.
    Row next(std::uint8_t token) {
        const auto embedding = tensor("embedding");
        Row x(width);
        for (std::size_t i = 0; i < width; ++i) { x[i] = embedding[token * width + i]; }
        for (std::size_t l = 0; l < layers; ++l) {
            const std::string prefix = "layers." + std::to_string(l) + ".";
            add(x,
                times(prefix + "attention_out", attend(l, times(prefix + "qkv", norm(prefix + "attention_norm", x)))));
            Row hidden = times(prefix + "up", norm(prefix + "mlp_norm", x));
            for (Real& h : hidden) {
                h = h / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846L) * (h + 0.044715L * h * h * h)));
            }
            add(x, times(prefix + "down", hidden));
        }
        ++position_;
        return times("embedding", norm("final_norm", x));
    }

  private:
    static constexpr std::size_t width = 64, heads = 4, layers = 4;

    std::span<const float> tensor(const std::string& name) const { return file_.values<float>(*file_.find(name)); }
    static void add(Row& x, const Row& y) {
        for (std::size_t i = 0; i < x.size(); ++i) { x[i] += y[i]; }
    }
    Row times(const std::string& name, const Row& x) const {
        const auto w = tensor(name);
        Row y(w.size() / x.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
            for (std::size_t j = 0; j < x.size(); ++j) { y[i] += w[i * x.size() + j] * x[j]; }
        }
        return y;
    }
    Row norm(const std::string& name, Row x) const {
        const auto gain = tensor(name);
        Real squares = 0;
        for (const Real v : x) { squares += v * v; }
        for (std::size_t i = 0; i < x.size(); ++i) { x[i] *= gain[i] / std::sqrt(squares / width + 1e-5L); }
        return x;
    }
    Row attend(std::size_t layer, const Row& qkv) {
        constexpr std::size_t size = width / heads, half = size / 2;
        const Real* parts = qkv.data();
        Row q(parts, parts + width), k(parts + width, parts + 2 * width);
        for (Row* row : {&q, &k}) {
            for (std::size_t h = 0; h < width; h += size) {
                for (std::size_t i = 0; i < half; ++i) {
                    const Real angle = position_ / std::pow(10000.0L, 2.0L * i / size);
                    Real &a = (*row)[h + i], &b = (*row)[h + half + i];
                    const Real turned = a * std::cos(angle) - b * std::sin(angle);
                    b = a * std::sin(angle) + b * std::cos(angle);
                    a = turned;
                }
            }
        }
        keys_[layer].push_back(k);
        values_[layer].emplace_back(parts + 2 * width, parts + 3 * width);
        Row out(width);
        for (std::size_t h = 0; h < width; h += size) {
            Row p;
            Real sum = 0;
            for (const Row& key : keys_[layer]) {
                Real score = 0;
                for (std::size_t i = h; i < h + size; ++i) { score += q[i] * key[i]; }
                p.push_back(std::exp(score / std::sqrt(Real(size))));
                sum += p.back();
            }
            for (std::size_t t = 0; t < p.size(); ++t) {
                for (std::size_t i = h; i < h + size; ++i) { out[i] += p[t] / sum * values_[layer][t][i]; }
            }
        }
        return out;
    }

    logitstat::SafetensorsFile file_;
    std::vector<std::vector<Row>> keys_, values_;
    std::size_t position_ = 0;
};

std::vector<std::uint8_t> held_out(std::size_t count) {
    const std::string text = test::read_file(folder + "held_out.txt");
    return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count)};
}

Matrix<float> logits_of(const Arithmetic<float>& arithmetic, std::span<const std::uint8_t> tokens) {
    const Shape shape;
    Weights<float> weights = read_weights(folder + "weights.safetensors", shape);
    for (const auto& [name, matrix] : weights.all()) { arithmetic.weight(name, *matrix); }
    Activations<float> activations;
    return forward(shape, weights, arithmetic, tokens, activations);
}

/// The largest difference of two matrices; infinite when it is not a number.
double distance(const Matrix<float>& a, const Matrix<float>& b) {
    const double worst = static_cast<double>((a - b).cwiseAbs().maxCoeff<Eigen::PropagateNaN>());
    return worst >= 0 ? worst : INFINITY;
}

} // namespace

TEST_CASE("tiny_lm: float32 arms give the logits of plain loops in long double, narrow arms come near") {
    const auto tokens = held_out(48);
    PlainModel plain(folder + "weights.safetensors");
    Matrix<float> expected(48, 256);
    for (Index t = 0; t < 48; ++t) {
        const Row row = plain.next(tokens[static_cast<std::size_t>(t)]);
        for (Index i = 0; i < 256; ++i) { expected(t, i) = static_cast<float>(row[static_cast<std::size_t>(i)]); }
    }
    CHECK(expected.cwiseAbs().maxCoeff() > 5); // logits of some size, so that the bounds below mean something
    const auto error = [&](std::string_view name) {
        for (const Arm& arm : arms) {
            if (arm.name == name) { return distance(logits_of(*arm.arithmetic(), tokens), expected); }
        }
        return double(INFINITY);
    };
    CHECK(error("float32") < 1e-4);
    CHECK(error("float32-reordered") < 1e-4);
    CHECK(error("float16") < 0.1);
    CHECK(error("bfloat16") < 1);
    CHECK(error("bfloat16") > 4 * error("float16"));
    CHECK(error("float16") > 4 * error("float32"));
    CHECK(error("int4") > 4 * error("int8"));
    CHECK(error("broken") > 1);
}

TEST_CASE("tiny_lm: a byte changes its own logits and later ones, none before it") {
    const auto tokens = held_out(40);
    for (const Arm& arm : arms) {
        CAPTURE(arm.name);
        const auto arithmetic = arm.arithmetic();
        const Matrix<float> before = logits_of(*arithmetic, tokens);
        for (const Index changed : {Index(0), Index(17), Index(39)}) {
            auto other = tokens;
            other[static_cast<std::size_t>(changed)] ^= 1;
            const Matrix<float> after = logits_of(*arithmetic, other);
            for (Index t = 0; t < 40; ++t) {
                CAPTURE(t);
                CHECK((before.row(t).array() == after.row(t).array()).all() == (t < changed));
            }
        }
    }
}

TEST_CASE("tiny_lm: what the arms hold in memory") {
    const auto original = test::random_weights<float>(test::small_shape, 3);
    for (const Arm& arm : arms) {
        CAPTURE(arm.name);
        auto held = original, as_read = original;
        const auto arithmetic = arm.arithmetic();
        const auto mine = held.all(), file = as_read.all();
        for (std::size_t i = 0; i < mine.size(); ++i) {
            CAPTURE(mine[i].name);
            arithmetic->weight(mine[i].name, *mine[i].matrix);
            const Matrix<float>&w = *mine[i].matrix, &f = *file[i].matrix;
            const bool in_a_product = mine[i].name.starts_with("layers.") && !mine[i].name.ends_with("norm");
            const bool narrow = arm.name == "bfloat16" || arm.name == "float16";
            const int bits = arm.name == "int8" ? 8 : arm.name == "int4" ? 4 : 0;
            if (narrow) { // nearest of 8 or 11 significant bits
                CHECK(((w - f).array().abs() <= f.array().abs() * (arm.name == "float16" ? 0x1p-11F : 0x1p-8F)).all());
                CHECK(distance(w, f) > 0);
                Matrix<float> again = w;
                arithmetic->store(again);
                CHECK(distance(again, w) == 0);
            } else if (bits > 0 && in_a_product) {
                for (Index r = 0; r < w.rows(); ++r) {
                    const float largest = f.row(r).cwiseAbs().maxCoeff(),
                                steps = static_cast<float>((1 << (bits - 1)) - 1);
                    for (Index c = 0; c < w.cols(); ++c) {
                        const float level = w(r, c) / largest * steps;
                        CHECK(std::abs(level - std::round(level)) < 1e-3F);
                        CHECK(std::abs(w(r, c) - f(r, c)) <= largest / steps * 0.5001F);
                    }
                }
                CHECK(distance(w, f) > 0);
            } else {
                CHECK(distance(w, f) == 0);
            }
        }
    }
    Matrix<float> zero = Matrix<float>::Zero(2, 3); // a row of zeros has no scale
    Quantized(4).weight("layers.0.up", zero);
    CHECK(distance(zero, Matrix<float>::Zero(2, 3)) == 0);
}

TEST_CASE("tiny_lm: the reordered arm sums the same terms in another order") {
    const Reordered reordered;
    const Arithmetic<float> plain;
    bool differs = false;
    for (const Index inner : {1, 2, 15, 16, 17, 64, 100}) {
        const Matrix<float> x = Matrix<float>::Random(5, inner), w = Matrix<float>::Random(7, inner);
        const Eigen::MatrixXd exact = x.cast<double>() * w.cast<double>().transpose();
        const Matrix<float> product = reordered.product(x, w);
        CHECK((product.cast<double>() - exact).cwiseAbs().maxCoeff() < 1e-5);
        differs |= distance(product, plain.product(x, w)) > 0;
        CHECK(static_cast<double>(reordered.sum(row_span(x, 2, inner))) ==
              doctest::Approx(x.row(2).cast<double>().sum()).epsilon(1e-4));
    }
    CHECK(differs);
    const float terms[] = {1, 1e8F, -1e8F}; // from the front: 0
    CHECK(reordered.sum(terms) == 1);
}

TEST_CASE("tiny_lm: weights survive their file bit for bit; a file that does not fit is refused by name") {
    const test::TempFolder temporary;
    const std::string path = temporary.path("w.safetensors");
    auto weights = test::random_weights<float>(test::small_shape, 5);
    write_weights(path, weights, {{"format", "tiny_lm"}});
    auto back = read_weights(path, test::small_shape);
    const auto a = weights.all(), b = back.all();
    for (std::size_t i = 0; i < a.size(); ++i) {
        CAPTURE(a[i].name);
        CHECK(std::memcmp(a[i].matrix->data(), b[i].matrix->data(),
                          static_cast<std::size_t>(a[i].matrix->size()) * sizeof(float)) == 0);
    }
    const auto refusal = [&](const Shape& shape) {
        try {
            read_weights(path, shape);
        } catch (const logitstat::parse_error& error) { return std::string(error.what()); }
        return std::string("accepted");
    };
    Shape other = test::small_shape;
    other.hidden = 13;
    CHECK(refusal(other) == path + ": tensor 'layers.0.up' has not the shape 13 x 8");
    other = test::small_shape;
    other.layers = 3;
    CHECK(refusal(other) == path + ": tensor 'layers.2.attention_norm' is missing");
    other.layers = 1;
    CHECK(refusal(other) == path + ": more tensors than the model has");
    weights.layers[1].down(2, 3) = NAN;
    write_weights(path, weights, {});
    CHECK(refusal(test::small_shape) == path + ": tensor 'layers.1.down' holds an infinite or NaN value");
}

TEST_CASE("tiny_lm: counting, by hand") {
    const std::uint8_t text[] = {'a', 'a', 'b'}, a[] = {'a'}, aa[] = {'a', 'a'}, c[] = {'c'};
    const double p_a = (2 + 2 / 256.0) / 5; // 2 of 3 bytes, 2 kinds
    CHECK(NGram(text, 1).nll(a) == doctest::Approx(-std::log(p_a)).epsilon(1e-14));
    CHECK(NGram(text, 1).nll(c) == doctest::Approx(-std::log(2 / 256.0 / 5)).epsilon(1e-14));
    const double after_a = (1 + 2 * p_a) / 4; // after a: a once, b once
    CHECK(NGram(text, 2).nll(aa) == doctest::Approx(-(std::log(p_a) + std::log(after_a)) / 2).epsilon(1e-14));
}

} // namespace test_forward
