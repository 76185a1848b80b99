#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/fuzz_file.hpp"
#include "fuzz/target.hpp"
#include "logitstat/error.hpp"
#include "logitstat/io/manifest.hpp"

namespace {

using logitstat::PairSpec;

void read(std::string_view bytes) {
    const auto path = fuzz::file_of(bytes);
    std::vector<PairSpec> pairs;
    try {
        pairs = logitstat::read_manifest(path);
    } catch (const logitstat::parse_error& refused) {
        fuzz::require(refused.path() == path.string(), "an error names the file");
        return;
    }
    fuzz::require(!pairs.empty(), "a manifest that is read holds a pair");
    std::set<std::pair<std::string, std::string>> seen;
    std::string again = "name\ttag\treference\tcandidate\r\n";
    for (const PairSpec& pair : pairs) { // paths are whole by now
        fuzz::require(!pair.name.empty() && !pair.reference.empty() && !pair.candidate.empty(), "no field is empty");
        fuzz::require(seen.emplace(pair.name, pair.tag).second, "no pair comes twice");
        fuzz::require(pair.label().starts_with(pair.name), "a label begins with the name");
        again += pair.name + '\t' + pair.tag + '\t' + pair.reference.string() + '\t' + pair.candidate.string() + "\r\n";
    }
    fuzz::require(logitstat::read_manifest(fuzz::file_of(again)) == pairs, "a manifest written anew is the same");
}

std::vector<std::string> seeds() {
    const std::string header = "name\ttag\treference\tcandidate\n";
    return {header + "qwen\tint8\tref/a.tsv\tcand/a.tsv\n",
            header + "qwen\t\ta.tsv\tb.tsv\nqwen\tint4\ta.tsv\tc.tsv\n# a remark\n\nm\tx\t/tmp/a\t../b",
            "\xEF\xBB\xBF# made by hand\r\nname\ttag\treference\tcandidate\r\nm\tt\ta b\t\xC3\xBC.tsv\r\n",
            header,
            header + "m\tt\ta\n",
            header + "m\tt\ta\tb\nm\tt\tc\td\n"};
}

} // namespace

std::vector<fuzz::Target> fuzz::manifest_targets() { return {{"manifest", read, seeds}}; }
