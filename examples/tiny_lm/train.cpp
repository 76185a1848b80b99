// train_tiny_lm: trains the model on text files. Plain Adam on random windows; the same seed, text and build give the
// same weights.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../cli.hpp"
#include "backward.hpp"
#include "ngram.hpp"
#include "weights_file.hpp"

namespace {

using namespace tiny_lm;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t threads = 2;  ///< each takes every second window; their number changes the order of a sum
constexpr std::size_t windows = 24; ///< a step
constexpr double weight_decay = 0.2, warm_up_steps = 200, largest_gradient = 1;

/// Normal weights with the variance that keeps a signal's size; what adds to the residual stream starts smaller, by
/// the number of additions (Radford et al. 2019). Gains start at 1.
void initialise(const Shape& shape, Weights<float>& weights, std::mt19937& random) {
    std::normal_distribution<float> normal;
    for (const auto& [name, matrix] : weights.all()) {
        const bool is_residual = name.ends_with("attention_out") || name.ends_with("down");
        const float deviation = name == "embedding"
                                    ? 0.1F
                                    : 1 / std::sqrt(static_cast<float>(matrix->cols()) *
                                                    (is_residual ? static_cast<float>(2 * shape.layers) : 1));
        for (float& value : matrix->reshaped()) { value = name.ends_with("norm") ? 1 : deviation * normal(random); }
    }
}

/// Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter 2019).
class Adam {
  public:
    explicit Adam(const Shape& shape) : mean_(shape), square_(shape) {}

    void step(Weights<float>& weights, Weights<float>& gradient, double rate) {
        ++steps_;
        const auto corrected = [&](double decay) { return static_cast<float>(1 / (1 - std::pow(decay, steps_))); };
        const float mean_scale = corrected(mean_decay), square_scale = corrected(square_decay);
        const auto w = weights.all(), g = gradient.all(), m = mean_.all(), s = square_.all();
        double squares = 0;
        for (const auto& [name, matrix] : g) { squares += static_cast<double>(matrix->squaredNorm()); }
        const float clip = static_cast<float>(std::min(1.0, largest_gradient / std::sqrt(squares)));
        for (std::size_t i = 0; i < w.size(); ++i) {
            *g[i].matrix *= clip;
            *m[i].matrix += (1 - mean_decay) * (*g[i].matrix - *m[i].matrix);
            *s[i].matrix += (1 - square_decay) * (g[i].matrix->cwiseAbs2() - *s[i].matrix);
            if (!w[i].name.ends_with("norm")) { *w[i].matrix *= static_cast<float>(1 - rate * weight_decay); }
            w[i].matrix->array() -= static_cast<float>(rate) * mean_scale * m[i].matrix->array() /
                                    ((square_scale * s[i].matrix->array()).sqrt() + 1e-8F);
        }
    }

  private:
    static constexpr float mean_decay = 0.9F, square_decay = 0.98F;
    Weights<float> mean_, square_;
    int steps_ = 0;
};

/// Runs work(i) for i below `threads` at once.
template <class Work> void at_once(const Work& work) {
    std::array<std::thread, threads> running;
    for (std::size_t i = 0; i < threads; ++i) { running[i] = std::thread(work, i); }
    for (std::thread& thread : running) { thread.join(); }
}

/// Loss and gradient over windows of the text, by all threads.
class Batches {
  public:
    explicit Batches(const Shape& shape) : shape_(shape), gradients_(threads, Weights<float>(shape)) {}

    /// Mean loss over windows that begin at `starts`; `gradient()` is that of this mean.
    double learn(const Weights<float>& weights, const Bytes& text, std::span<const std::size_t> starts) {
        const auto size = static_cast<std::size_t>(shape_.context);
        std::array<double, threads> loss{};
        at_once([&](std::size_t thread) {
            for (const auto& [name, matrix] : gradients_[thread].all()) { matrix->setZero(); }
            for (std::size_t i = thread; i < starts.size(); i += threads) {
                const std::span tokens(&text[starts[i]], size), targets(&text[starts[i] + 1], size);
                Matrix<float> logits = forward(shape_, weights, plain_, tokens, activations_[thread]);
                loss[thread] += static_cast<double>(cross_entropy<float>(logits, targets));
                logits /= static_cast<float>(size * starts.size());
                backward(shape_, weights, tokens, activations_[thread], logits, gradients_[thread]);
            }
        });
        const auto total = gradient().all();
        for (std::size_t thread = 1; thread < threads; ++thread) {
            const auto part = gradients_[thread].all();
            for (std::size_t i = 0; i < total.size(); ++i) { *total[i].matrix += *part[i].matrix; }
        }
        return sum(loss) / static_cast<double>(size * starts.size());
    }
    Weights<float>& gradient() { return gradients_[0]; }

    /// Mean loss of a text: windows half a context apart, of which the second halves count.
    double loss(const Weights<float>& weights, const Bytes& text) {
        const auto size = static_cast<std::size_t>(shape_.context), half = size / 2;
        std::array<double, threads> loss{}, count{};
        at_once([&](std::size_t thread) {
            for (std::size_t at = thread * half; at + size < text.size(); at += threads * half) {
                const std::span tokens(&text[at], size), targets(&text[at + 1 + half], size - half);
                Matrix<float> logits = forward(shape_, weights, plain_, tokens, activations_[thread])
                                           .bottomRows(static_cast<Index>(size - half));
                loss[thread] += static_cast<double>(cross_entropy<float>(logits, targets));
                count[thread] += static_cast<double>(size - half);
            }
        });
        return sum(loss) / sum(count);
    }

  private:
    static double sum(const std::array<double, threads>& parts) {
        double total = 0;
        for (const double part : parts) { total += part; }
        return total;
    }

    Shape shape_;
    Arithmetic<float> plain_;
    std::vector<Weights<float>> gradients_; ///< a thread; the first is their sum in the end
    std::array<Activations<float>, threads> activations_;
};

} // namespace

int main(int argc, char** argv) {
    CLI::App app("Trains tiny_lm on the bytes of text files and writes its weights.", "train_tiny_lm");
    std::string output, held_out_path = PROJECT_FOLDER "/examples/tiny_lm/held_out.txt", steps_text = "6000",
                        rate_text = "0.004", seed = "1";
    std::vector<std::string> texts;
    app.add_option("OUTPUT", output, "weights, written anew at each line of progress")
        ->type_name("FILE")
        ->check(cli::not_empty())
        ->required();
    app.add_option("TEXT", texts, "what to train on")->type_name("FILE")->check(cli::not_empty())->required();
    app.add_option("--held-out", held_out_path, "text to measure on, never trained on (default: the project's)")
        ->type_name("FILE")
        ->check(cli::not_empty());
    app.add_option("--steps", steps_text, "of " + std::to_string(windows) + " windows")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--rate", rate_text, "largest learning rate")->type_name("R")->capture_default_str();
    app.add_option("--seed", seed, "of the first weights and the order of windows")
        ->type_name("N")
        ->capture_default_str();

    return cli::run(app, argc, argv, [&] {
        const auto steps = cli::number<std::uint32_t>("--steps", steps_text);
        const double largest_rate = cli::number<double>("--rate", rate_text);
        if (steps == 0) { throw std::invalid_argument("--steps: at least 1 is needed"); }
        if (!(largest_rate > 0 && largest_rate <= 1)) {
            throw std::invalid_argument("--rate: " + rate_text + " is not above 0 and at most 1");
        }
        std::mt19937 random(cli::number<std::uint32_t>("--seed", seed));
        const Shape shape;
        const auto context = static_cast<std::size_t>(shape.context);
        const auto read = [&](const std::string& path) {
            const logitstat::MappedFile file(path);
            return Bytes(file.text().begin(), file.text().end());
        };
        std::vector<std::string> inputs = texts;
        inputs.push_back(held_out_path);
        for (const std::string& path : inputs) {
            if (cli::same_file(path, output)) {
                throw std::invalid_argument(output + ": the weights would overwrite this text");
            }
        }
        Bytes text;
        for (const std::string& path : texts) {
            const Bytes more = read(path);
            text.insert(text.end(), more.begin(), more.end());
        }
        const Bytes held_out = read(held_out_path);
        for (const Bytes* bytes : std::array<const Bytes*, 2>{&text, &held_out}) {
            if (bytes->size() <= context) {
                throw std::invalid_argument("a text of " + std::to_string(bytes->size()) + " bytes, more than " +
                                            std::to_string(context) + " are needed");
            }
        }

        std::printf("training text %zu bytes, held-out text %zu bytes\n", text.size(), held_out.size());
        for (std::size_t order = 1; order <= 5; ++order) {
            std::printf("held-out loss of counting, order %zu: %.4f nats a byte\n", order,
                        NGram(text, order).nll(held_out));
        }
        std::fflush(stdout);
        Weights<float> weights(shape);
        initialise(shape, weights, random);
        Adam adam(shape);
        Batches batches(shape);
        std::vector<std::size_t> starts(windows);
        double loss = 0;
        constexpr std::uint32_t line_every = 250;
        for (std::uint32_t step = 1; step <= steps; ++step) {
            for (std::size_t& start : starts) { start = random() % (text.size() - context); }
            loss += batches.learn(weights, text, starts);
            const double done = step / static_cast<double>(steps); // cosine decay to 3 % (Loshchilov and Hutter 2017)
            const double decay = 0.03 + 0.97 * 0.5 * (1 + std::cos(std::numbers::pi * done));
            adam.step(weights, batches.gradient(), largest_rate * decay * std::min(1.0, step / warm_up_steps));
            if (step % line_every == 0 || step == steps) {
                const double held_out_loss = batches.loss(weights, held_out);
                const std::uint32_t since = (step - 1) % line_every + 1;
                std::printf("step %u of %u: training loss %.4f, held-out loss %.4f\n", step, steps, loss / since,
                            held_out_loss);
                std::fflush(stdout);
                loss = 0;
                write_weights(output, weights,
                              {{"format", "tiny_lm"},
                               {"steps", std::to_string(step)},
                               {"held_out_nats_per_byte", logitstat::report::fixed(held_out_loss, 4)}});
            }
        }
        return 0;
    });
}
