# Sourced by the scripts that build: installs what is missing, configures, builds. Needs a C++20 compiler and CMake.

say() { printf '==> %s\n' "$*"; }

# install_packages PACKAGE...: installs Debian packages that are missing. Elsewhere, or without the right to install,
# it says what to do and fails.
install_packages() {
    command -v apt-get >/dev/null || { say "no apt-get here: install the packages that CMake names above"; return 1; }
    local missing=() package sudo=()
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || { say "all Debian packages are installed; see the message above"; return 1; }
    if [ "$(id -u)" -ne 0 ]; then
        if sudo -n true 2>/dev/null; then sudo=(sudo); else
            say "please run: sudo apt-get install ${missing[*]}"
            return 1
        fi
    fi
    say "installing ${missing[*]}"
    "${sudo[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# configure FOLDER PACKAGES CMAKE-ARGUMENT...: configures the checkout into FOLDER. When that fails, installs what is
# missing of PACKAGES (one string) and tries once more.
configure() {
    local folder=$1 packages=$2 log
    shift 2
    log=$(mktemp)
    if ! cmake -S . -B "$folder" "$@" >"$log" 2>&1; then
        # shellcheck disable=SC2086
        { grep -A7 'CMake Error' "$log" || cat "$log"; } && install_packages $packages || { rm -f "$log"; return 1; }
        cmake -S . -B "$folder" "$@" >"$log" 2>&1 || { cat "$log"; rm -f "$log"; return 1; }
    fi
    rm -f "$log"
}

library_packages="libeigen3-dev libboost-dev libxsimd-dev nlohmann-json3-dev"
program_packages="$library_packages libcli11-dev libtbb-dev"
all_packages="$program_packages doctest-dev libbenchmark-dev"
