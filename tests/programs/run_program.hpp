#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/// What a test of a program needs: run it as a shell would, look at what it leaves behind.
namespace test {

/// A folder that exists as long as the object.
class TempFolder {
  public:
    TempFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "logitstat-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) { throw std::runtime_error("cannot make a temporary folder"); }
        path_ = name;
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::string path(const std::string& name = {}) const { return (path_ / name).string(); }

    /// Writes a file and returns its path.
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream stream(path(name), std::ios::binary);
        if (!(stream << bytes << std::flush)) { throw std::runtime_error("cannot write " + path(name)); }
        return path(name);
    }

    /// The names in the folder: also shows what a program left behind.
    std::set<std::string> names() const {
        std::set<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(path_)) {
            found.insert(entry.path().filename().string());
        }
        return found;
    }

  private:
    std::filesystem::path path_;
};

inline std::string read_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) { throw std::runtime_error("cannot read " + path); }
    return {std::istreambuf_iterator<char>(stream), {}};
}

struct Finished {
    int status = -1; ///< exit status, or 128 + the signal that ended the program
    std::string out, err;
    std::size_t peak_bytes = 0; ///< most memory that the program held; 0 where that was not measured
};

struct RunOptions {
    std::vector<std::pair<std::string, std::string>> environment; ///< added to the test's own
    bool terminal = false;                                        ///< standard output is a (pseudo) terminal
    std::string out_file;                                         ///< standard output goes here, `out` stays empty
};

/// Runs a program without a shell, standard input empty, and waits for its end. NO_COLOR is not inherited.
inline Finished run(std::vector<std::string> command, const RunOptions& options = {}) {
    const TempFolder folder;
    const std::string out_path = options.out_file.empty() ? folder.path("out") : options.out_file;
    const std::string err_path = folder.path("err");
    std::vector<char*> arguments;
    for (std::string& word : command) { arguments.push_back(word.data()); }
    arguments.push_back(nullptr);

    const auto check = [](int result, const char* what) {
        if (result < 0) { throw std::system_error(errno, std::generic_category(), what); }
        return result;
    };
    int master = -1;
    std::string terminal;
    if (options.terminal) {
        master = check(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), "posix_openpt");
        check(grantpt(master), "grantpt");
        check(unlockpt(master), "unlockpt");
        terminal = ptsname(master);
    }
    const pid_t child = check(fork(), "fork");
    if (child == 0) {
        const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
        const int out = options.terminal ? open(terminal.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC)
                                         : open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        const int err = open(err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        unsetenv("NO_COLOR");
        for (const auto& [name, value] : options.environment) { setenv(name.c_str(), value.c_str(), 1); }
        if (dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2) { execvp(arguments[0], arguments.data()); }
        _exit(127);
    }

    Finished result;
    if (options.terminal) { // a terminal holds little: read while the program runs; EIO is its end
        const int keep_open = open(terminal.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC); // until the child has opened it
        int state = 0;
        bool ended = false;
        check(fcntl(master, F_SETFL, O_NONBLOCK), "fcntl");
        for (std::array<char, 4096> buffer{};;) {
            const ssize_t count = read(master, buffer.data(), buffer.size());
            if (count > 0) {
                result.out.append(buffer.data(), static_cast<std::size_t>(count));
            } else if (ended) {
                break;
            } else if (check(waitpid(child, &state, WNOHANG), "waitpid") == child) {
                ended = true; // one more round for what is still in the terminal
            } else {
                usleep(1000);
            }
        }
        close(keep_open);
        close(master);
        result.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    } else {
        int state = 0;
        rusage used{};
        check(wait4(child, &state, 0, &used), "wait4");
#if defined(__linux__)
        result.peak_bytes = static_cast<std::size_t>(used.ru_maxrss) * 1024;
#endif
        result.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
        if (options.out_file.empty()) { result.out = read_file(out_path); }
    }
    result.err = read_file(err_path);
    return result;
}

/// Lines of a text; a last line without a newline counts.
inline std::size_t count_lines(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) +
           (text.empty() || text.ends_with('\n') ? 0 : 1);
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
    }
    return text;
}

/// True when a text for people or a JSON text shows a NaN or an infinity as a word of its own.
inline bool shows_nan_or_inf(const std::string& text) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    for (std::size_t i = 0; i < text.size();) {
        std::string word;
        while (i < text.size() && is_letter(text[i])) { word += static_cast<char>(text[i++] | 0x20); }
        if (word == "nan" || word == "inf" || word == "infinity") { return true; }
        if (word.empty()) { ++i; }
    }
    return false;
}

/// Is all of a text well-formed UTF-8?
inline bool is_utf8(const std::string& text) {
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        if (length == 0 || lead > 0xf4 || i + length > text.size()) { return false; }
        for (std::size_t j = 1; j < length; ++j) {
            if ((static_cast<unsigned char>(text[i + j]) & 0xc0) != 0x80) { return false; }
        }
        i += length;
    }
    return true;
}

/// A text trace of a few rows in one chunk: targets 10, 11, ...; each row is "ids logits nll".
inline std::string small_trace(const std::vector<std::string>& rows, const std::string& metadata = {}) {
    std::string text = metadata;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::istringstream fields(rows[i]);
        std::string ids, logits, nll;
        fields >> ids >> logits >> nll;
        text +=
            "0\t" + std::to_string(i) + "\t" + std::to_string(10 + i) + "\t" + nll + "\t" + ids + "\t" + logits + "\n";
    }
    return text;
}

} // namespace test
