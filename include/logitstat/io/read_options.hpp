#pragma once

namespace logitstat {

/// How strictly a trace file is read. The defaults refuse whatever is doubtful.
struct ReadOptions {
    /// Take infinite and NaN values ("inf", "nan" in text) instead of refusing the file: for a comparison under
    /// non_finite_policy::skip. Nothing else accepts them.
    bool keep_non_finite = false;
    /// For a text trace that a killed run left behind: drop a last line without a newline, whatever it looks like, and
    /// say so in a warning. A binary trace appears only when it is complete: there this changes nothing.
    bool recover = false;
};

} // namespace logitstat
