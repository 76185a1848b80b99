#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/io/text_trace_reader.hpp"

namespace test_text_trace_mutations {

using logitstat::parse_error;
using logitstat::parse_text_trace;
using namespace testing;

/// Cut, damaged and hostile traces: a parser may refuse them or find a valid trace in them, nothing else.

namespace {

std::size_t lines_of(std::string_view text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) +
           (text.empty() || text.ends_with('\n') ? 0 : 1);
}

/// Nothing when the parser refused the text. A parse that returned is checked: a valid trace, and every line of the
/// text accounted for as metadata, as chatter or as a row.
template <class Real> std::size_t rows_read(const std::string& text) {
    try {
        const auto trace = parse_text_trace<Real>(text, "m.tsv");
        CHECK(broken_invariant(trace) == "");
        const std::string_view body = std::string_view(text).substr(text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
        CHECK(trace.size() + trace.source.skipped_lines() + trace.source.metadata.lines().size() == lines_of(body));
        return trace.size();
    } catch (const parse_error& e) {
        CHECK(std::string_view(e.what()).size() < 300);
        return 0;
    }
}

std::string mutated(std::string text, std::mt19937& random) {
    static const std::vector<std::string> tokens{"nan",
                                                 "-",
                                                 "1e999",
                                                 "\t",
                                                 ",",
                                                 "\r",
                                                 "\n",
                                                 "\r\n",
                                                 "#",
                                                 "# ",
                                                 "0",
                                                 ".",
                                                 "e",
                                                 "+",
                                                 " ",
                                                 "\xEF\xBB\xBF",
                                                 "inf",
                                                 "\t\t",
                                                 ",,",
                                                 "99999999999",
                                                 std::string(1, '\0'),
                                                 "-1"};
    const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
    const auto line_at = [&](std::size_t at) {
        const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
        const std::size_t end = text.find('\n', begin);
        return std::pair(begin, end == text.npos ? text.size() : end + 1);
    };
    for (std::size_t rounds = 1 + below(3); rounds-- > 0 && !text.empty();) {
        const std::size_t at = below(text.size());
        const auto [begin, end] = line_at(at);
        const std::string line = text.substr(begin, end - begin);
        switch (below(10)) {
        case 0: text[at] = static_cast<char>(random() & 255); break;
        case 1: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
        case 2: text.erase(at, 1); break;
        case 3: text.insert(at, tokens[below(tokens.size())]); break;
        case 4: text.replace(at, 1, tokens[below(tokens.size())]); break;
        case 5: text.resize(at); break;
        case 6: text.erase(0, at); break;
        case 7: text.insert(begin, line); break;
        case 8: text.erase(begin, end - begin); break;
        default: // a line moves elsewhere
            text.erase(begin, end - begin);
            text.insert(text.empty() ? 0 : line_at(below(text.size())).first, line);
        }
    }
    return text;
}

const std::string head = "# model\tm.gguf\n# chunks\t2\tchunk_tokens\t8\nloading\n";

} // namespace

TEST_CASE_TEMPLATE("a damaged trace is refused or valid", Real, float, double) {
    std::mt19937 random(20240601);
    const std::string valid = head + generated_rows(12, 3, 5);
    REQUIRE(rows_read<Real>(valid) == 12);
    int refused = 0, read = 0;
    for (int i = 0; i < 20000; ++i) {
        const std::string text = mutated(valid, random);
        CAPTURE(i);
        CAPTURE(text);
        ++(rows_read<Real>(text) == 0 ? refused : read);
    }
    // Both happen, or the mutations show nothing.
    CHECK(refused > 5000);
    CHECK(read > 1000);
}

TEST_CASE("a trace of which one byte was replaced never loses a row silently") {
    const std::string preamble = "# model\tm\nloading\n", text = preamble + tsv(rows);
    for (std::size_t at = preamble.size(); at < text.size(); ++at) {
        for (const char byte : {'x', ' ', '\t', ',', '7', '-', '.', '\0', '\r'}) {
            std::string damaged = text;
            damaged[at] = byte;
            CAPTURE(damaged);
            const std::size_t n = rows_read<double>(damaged);
            CHECK((n == 0 || n == 3));
        }
    }
}

TEST_CASE("a trace cut anywhere gives the rows that are whole, or an error") {
    const auto check_cuts = [](const std::string& text, std::string_view line_end) {
        const auto whole = parse_text_trace(text, "cut.tsv");
        const std::size_t data = text.find("0\t0\t");
        for (std::size_t size = 0; size < text.size(); ++size) {
            const std::string part = text.substr(0, size);
            // A row is whole when all of it but its line end is there.
            std::size_t expected = 0;
            for (std::size_t row = 0, end = data; row < whole.size(); ++row) {
                const std::size_t begin = end;
                end = text.find('\n', begin) + 1;
                if (size == begin && size > data) { expected = row; }
                if (size + line_end.size() >= end && size <= end) { expected = row + 1; }
            }
            CAPTURE(part);
            CHECK(rows_read<double>(part) == expected);
            if (expected > 0) {
                const auto trace = parse_text_trace(part, "cut.tsv");
                for (std::size_t i = 0; i < expected; ++i) {
                    CHECK(trace.target[i] == whole.target[i]);
                    CHECK(trace.nll[i] == whole.nll[i]);
                    for (std::size_t j = 0; j < whole.k; ++j) {
                        CHECK(trace.view().ids(j)[i] == whole.view().ids(j)[i]);
                        CHECK(trace.view().logits(j)[i] == whole.view().logits(j)[i]);
                    }
                }
            }
        }
    };
    const std::string text = head + generated_rows(4, 3, 11);
    check_cuts(text, "\n");
    check_cuts(replaced(text, "\n", "\r\n"), "\r\n");
}

TEST_CASE("a cut that nobody can tell, since decimals vary, is at least warned of") {
    const std::string text = tsv("0 0 5 1.25 7,8 3.125,2.5\n0 1 5 0.1 7,8 3.12345,2.75\n");
    const std::size_t border = text.find('\n') + 1;
    int warned = 0;
    for (std::size_t size = 1; size < text.size(); ++size) {
        if (size == border) { continue; }
        CAPTURE(size);
        if (rows_read<double>(text.substr(0, size)) == 0) { continue; }
        CHECK(parse_text_trace(text.substr(0, size), "cut.tsv").source.warnings.size() == 1);
        ++warned;
    }
    CHECK(warned > 4); // "2." "2.5" "2.75"...: they are there
}

// ---- memory --------------------------------------------------------------------------------------------------------

namespace {

// The bytes that this program asks for; the replaced operators count them.
std::atomic<std::size_t> asked_for = 0;

} // namespace

} // namespace test_text_trace_mutations

// Aligned forms are not used by the parser. The nothrow form (a stable sort's buffer) is here because a sanitizer's own
// would not end in the one below, and its memory would then be given back by the wrong one.
void* operator new(std::size_t size) {
    test_text_trace_mutations::asked_for += size;
    if (void* memory = std::malloc(size == 0 ? 1 : size)) { return memory; }
    throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    test_text_trace_mutations::asked_for += size;
    return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace test_text_trace_mutations {

TEST_CASE("memory stays in proportion to the file, whatever its first row announces") {
    const std::string wide = generated_rows(1, 100000, 2);
    const std::string narrow = generated_rows(8, 2, 2);
    const auto check_memory = [](const std::string& text, std::size_t line) {
        const std::size_t before = asked_for;
        bool refused = false;
        std::size_t errs_at = 0;
        try {
            parse_text_trace<double>(text, "hostile.tsv");
        } catch (const parse_error& e) {
            refused = true;
            errs_at = e.line();
        }
        const std::size_t used = asked_for - before;
        CHECK(refused);
        CHECK(errs_at == line);
        CHECK(used > 0);
        CHECK(used < 17 * text.size() + 10000); // 16 bytes a candidate, of which a comma may be all there is
    };
    check_memory(wide + std::string(4'000'000, '\n'), 2);
    check_memory(narrow + std::string(4'000'000, '\n'), 9);
    check_memory(std::string(1'000'000, '\n') + wide + std::string(1'000'000, '\n'), 1'000'002);
    check_memory("0\t0\t5\t1\t" + std::string(4'000'000, ',') + "\t\n", 1);
    check_memory("0\t0\t5\t1\t1,2\t" + std::string(4'000'000, ',') + "\n", 1);
    check_memory(std::string(1'000'000, '\n'), 0);
}

} // namespace test_text_trace_mutations
