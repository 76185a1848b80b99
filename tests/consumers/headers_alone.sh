#!/bin/sh
# headers_alone.sh INCLUDE-FOLDER COMPILER [OPTION...]: each header of the library must compile alone.
cd "$1" || exit 1
shift
check='header=$1
shift
printf "#include \"%s\"\n" "$header" | "$@" -x c++ -fsyntax-only - || {
    echo "^ $header does not compile alone"
    exit 255 # ends xargs
}'
find logitstat -name "*.hpp" | xargs -P "$(nproc 2>/dev/null || echo 2)" -I {} sh -c "$check" sh {} "$@"
