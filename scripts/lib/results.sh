# What CTest's results file (--output-junit) tells. To be sourced.
# shellcheck shell=bash

# total_of RESULTS ATTRIBUTE: tests, failures or skipped. They stand a line each at the file's beginning.
total_of() { sed -nE "s/^[[:space:]]*$2=\"([0-9]+)\".*/\1/p" "$1" | head -n 1; }

# failures_of RESULTS: the names of the tests that failed, a line each.
failures_of() { sed -nE 's/^[[:space:]]*<testcase name="([^"]*)".* status="fail".*/\1/p' "$1"; }

# skips_of RESULTS: a line "NAME: REASON" for each test that was skipped, and "NAME, in part: REASON" for each that
# passed without a part of itself. The reason is what the test says after "skipped: " or, in a program of doctest
# cases, "MESSAGE: not checked: "; else what CTest says.
skips_of() {
  awk '
    function attribute(name) {
      return match($0, " " name "=\"[^\"]*\"") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : ""
    }
    function plain(text) {
      gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text); gsub(/&amp;/, "\\&", text)
      return text
    }
    /^[[:space:]]*<testcase / {
      name = attribute("name"); skipped = attribute("status") == "notrun"; reason = said = ""
    }
    /^[[:space:]]*<skipped / { reason = attribute("message") }
    { sub(/^[[:space:]]*<system-out>/, "") }
    sub(/^skipped: |^.*MESSAGE: not checked: /, "") {
      sub(/<\/system-out>$/, ""); said = said (said == "" ? "" : "; ") $0
    }
    /^[[:space:]]*<\/testcase>/ && (skipped || said != "") {
      print plain(name) (skipped ? "" : ", in part") ": " plain(said != "" ? said : reason)
    }' "$1"
}
