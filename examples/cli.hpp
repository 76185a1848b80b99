#pragma once

// What the programs share on their command lines: strict numbers, progress, and errors of one line with status 2.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "logitstat/error.hpp"
#include "logitstat/io/output_file.hpp"
#include "logitstat/report/format.hpp"
#include "logitstat/version.hpp"

namespace cli {

inline constexpr int status_error = 2; // bad usage, unreadable or incomparable input: never mistaken for a verdict

/// The whole text as a number. CLI11 would read "" as 0 and "-1" as a huge count, and a gate must not guess.
template <class Number> Number number(const std::string& option, std::string_view text) {
    const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
    const std::string_view digits = text.substr(first, text.find_last_not_of(' ') + 1 - first);
    Number value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() ||
        (std::is_integral_v<Number> && value < Number(0))) {
        const std::string why = error == std::errc::result_out_of_range ? " is out of range"
                                : std::is_integral_v<Number>            ? " is not a whole number of at least 0"
                                                                        : " is not a number";
        throw std::invalid_argument(option + ": '" + std::string(text) + "'" + why + " (see --help)");
    }
    return value;
}

/// Runs a check of the library's and puts the option's name before its complaint.
template <class Check> auto named(const std::string& option, const Check& check) {
    try {
        return check();
    } catch (const std::exception& bad) { throw std::invalid_argument(option + ": " + bad.what()); }
}

inline CLI::Validator not_empty() {
    return CLI::Validator([](std::string& text) { return std::string(text.empty() ? "an empty value" : ""); }, "");
}

/// The file that writing to a name would write, whether it is there or not.
inline std::filesystem::path canonical(const std::string& name) {
    std::error_code none;
    return std::filesystem::weakly_canonical(
        std::filesystem::absolute(logitstat::detail::behind_symbolic_links(name), none), none);
}

/// True when writing to both names would lose one of them. Devices and pipes lose nothing; "-" is standard output.
inline bool same_file(const std::string& a, const std::string& b) {
    namespace fs = std::filesystem;
    std::error_code none;
    return a != "-" && b != "-" && (!fs::exists(a, none) || fs::is_regular_file(a, none)) &&
           canonical(a) == canonical(b);
}

/// "12 of 40 pairs" on one line of a terminal, once the work has taken a second; wiped at the end.
class Progress {
  public:
    explicit Progress(const char* items) : items_(items) {}
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { clear(); }
    /// Before other output to the terminal.
    void clear() {
        if (std::exchange(shown_, false)) { std::fputs("\r\x1b[K", stderr); }
    }
    void operator()(std::size_t done, std::size_t total) {
        const bool is_long = std::chrono::steady_clock::now() - start_ > std::chrono::seconds(1);
        if (!is_long || isatty(STDERR_FILENO) == 0) { return; }
        std::fprintf(stderr, "\r%zu of %zu %s", done, total, items_);
        shown_ = true;
    }

  private:
    const char* items_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    bool shown_ = false;
};

/// The end from where nothing may be allocated and no destructor runs.
[[noreturn]] inline void end_with(std::string_view message) {
    if (write(STDERR_FILENO, message.data(), message.size()) < 0) { _exit(status_error); }
    _exit(status_error);
}

/// Parses and runs. Errors are one line each on standard error and status 2; --help and --version are status 0.
inline int run(CLI::App& app, int argc, char** argv, const std::function<int()>& program) {
    // A closed pipe or a file at its size limit is a failed write like any other, which cleans up behind itself.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    // What no exception tells: a mapped file that shrank, and a library's thread that could not be made.
    std::signal(SIGBUS, [](int) { end_with("a file became shorter while it was read\n"); });
    std::set_terminate([] { end_with("not enough memory or threads\n"); });
    // A closed standard stream must not become the number of a file that is opened later and take its text.
    int descriptor = 0;
    while ((descriptor = open("/dev/null", O_RDONLY)) >= 0 && descriptor <= STDERR_FILENO) {}
    if (descriptor >= 0) { close(descriptor); }

    // The name that was typed: an installed program is called logitstat-compare-traces.
    if (argc > 0 && *argv[0] != '\0') { app.name(std::filesystem::path(argv[0]).filename().string()); }
    const auto fail = [&](std::string_view message) {
        std::cerr << app.get_name() << ": " << logitstat::report::printable(message) << '\n';
        return status_error;
    };
    app.set_version_flag("--version", app.get_name() + " " LOGITSTAT_VERSION_STRING);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked_for_help) {
        const int status = app.exit(asked_for_help);
        return std::cout << std::flush ? status : fail("cannot write to standard output");
    } catch (const CLI::ParseError& bad_usage) { return fail(std::string(bad_usage.what()) + " (see --help)"); }
    try {
        return program();
    } catch (const logitstat::not_comparable& reasons) {
        const std::string all = reasons.what(); // under --strict there may be several, one a line
        for (std::size_t start = 0, end = 0; start < all.size(); start = end + 1) {
            end = std::min(all.find('\n', start), all.size());
            fail(std::string_view(all).substr(start, end - start));
        }
        return status_error;
    } catch (const std::bad_alloc&) { return fail("not enough memory"); } catch (const std::exception& error) {
        return fail(error.what());
    }
}

} // namespace cli
