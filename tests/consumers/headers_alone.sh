#!/bin/sh
# headers_alone.sh INCLUDE-FOLDER COMPILER [OPTION...]: each header of the library must compile alone.
#
# As alone counts also a header that follows others in a translation unit if it includes all of those itself, directly or
# not: it sees nothing that it does not ask for. So the headers are put into chains, each in the closure of the next, and
# only a chain costs a compilation.
set -e
cd "$1"
shift

chains='
/^#include "logitstat\// { split($0, word, "\""); includes[FILENAME] = includes[FILENAME] " " word[2] }
FNR == 1 { headers[++n] = FILENAME }
function close_over(top, header,    word, count, i) { # what top includes, with itself
    if ((top, header) in closure) return
    closure[top, header] = 1
    ++size[top]
    count = split(includes[header], word, " ")
    for (i = 1; i <= count; ++i) close_over(top, word[i])
}
function largest_within(top,    best, i) { # of those in no chain; any when there is no top
    for (i = 1; i <= n; ++i)
        if (!(headers[i] in taken) && (top == "" || (top, headers[i]) in closure) && size[headers[i]] > size[best])
            best = headers[i]
    return best
}
END {
    for (i = 1; i <= n; ++i) close_over(headers[i], headers[i])
    while ((header = largest_within("")) != "") {
        chain = ""
        for (; header != ""; header = largest_within(header)) {
            taken[header] = 1
            chain = header " " chain
        }
        print chain
    }
}'
check='for header in $1; do echo "#include \"$header\""; done >"$2/$$.cpp"
source=$2/$$.cpp
shift 2
"$@" -fsyntax-only "$source" || {
    echo "^ the header that is named does not compile alone"
    exit 255 # ends xargs
}'
sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT
find logitstat -name "*.hpp" -exec awk "$chains" {} + |
    xargs -P "$(nproc 2>/dev/null || echo 2)" -I {} sh -c "$check" sh {} "$sources" "$@"
