# What Doxygen reads instead of a header or a page, line by line: a comment goes to the file it opens, and a page's links
# lead somewhere in the reference, while the files stay as compilers and forges want them.

function flush_comment(line) {
    # A comment of `///` lines is about the whole file when a namespace or an empty line follows it. The line that says
    # so takes the place of the empty one ahead of it, so that warnings name the right lines.
    if (comment == "") { return }
    if (gap) { print (line == "" || line ~ /^namespace /) ? "/// @file" : "" }
    gap = 0
    printf "%s", comment
    comment = ""
}

# Links to files that are not in the reference become the name of the file.
function with_links(line,    done, link, part, file) {
    done = ""
    while (match(line, /\[[^][]*\]\([^)]*\)/)) {
        link = substr(line, RSTART, RLENGTH)
        split(substr(link, 2, RLENGTH - 2), part, /\]\(/)
        if (part[2] !~ /^(https?:|#)/ && part[2] !~ (FILENAME ~ /README\.md$/ ? "^docs/[^/]*\\.md" : "^[^/]*\\.md")) {
            file = "`" part[2] "`"
            link = part[1] == part[2] || part[1] == part[2] "/" ? file : part[1] " (" file ")"
        }
        done = done substr(line, 1, RSTART - 1) link
        line = substr(line, RSTART + RLENGTH)
    }
    return done line
}

FNR == 1 {
    page = FILENAME ~ /\.md$/
    # The names of the headings that links of the page lead to, as forges make them: lower case, '-' for a space.
    if (page) {
        while ((getline text < FILENAME) > 0) {
            while (match(text, /\]\(#[^)]*\)/)) {
                linked[substr(text, RSTART + 3, RLENGTH - 4)] = 1
                text = substr(text, RSTART + RLENGTH)
            }
        }
        close(FILENAME)
    }
}

page {
    if ($0 ~ /^```/) { code = !code }
    if (!code && $0 ~ /^#+ /) {
        name = tolower($0)
        sub(/^#+ /, "", name)
        gsub(/[^a-z0-9 _-]/, "", name)
        gsub(/ /, "-", name)
        if (name in linked) { $0 = $0 " {#" name "}" }
    }
    if (!code) {
        # A link whose text is broken over two lines goes to the second: Doxygen takes it for none, and says nothing.
        $0 = begun $0
        begun = ""
        if (match($0, /\[[^][]*$/)) {
            begun = substr($0, RSTART) " "
            $0 = substr($0, 1, RSTART - 1)
        }
        $0 = with_links($0)
    }
    print
    next
}

/^\/\/\// { comment = comment $0 "\n"; next }

{
    flush_comment($0)
    if (gap) { print "" }
    gap = $0 == ""
    if (!gap) { print }
}

END { flush_comment("") }
