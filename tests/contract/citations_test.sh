#!/usr/bin/env bash
# Every citation key that the sources and documents use is in docs/references.bib, and every entry there is used.
#   citations_test.sh SOURCE_DIR
set -euo pipefail
cd "$1"
key='\b[a-z]+(19|20)[0-9]{2}[a-z]+\b'
folders=(analysis apps base docs research runtime sparsify topology trigger)
used=$(grep -rohE "$key" --include='*.cpp' --include='*.hpp' --include='*.md' --include='*.py' "${folders[@]}" |
  sort -u)
known=$(sed -nE 's/^@[a-z]+\{([^,]+),.*/\1/p' docs/references.bib | sort)
[[ -n $used && -n $known ]] || { echo "FAILED: found no citations at all"; exit 1; }
missing=$(comm -23 <(echo "$used") <(sort -u <<<"$known"))
unused=$(comm -13 <(echo "$used") <(sort -u <<<"$known"))
twice=$(uniq -d <<<"$known")
# A merge can lose the brace that ends an entry, and everything after it is then part of that one.
unended=$(awk '/^@/ {if (entry != "") print entry; entry = $0} /^}/ {entry = ""} END {if (entry != "") print entry}' \
  docs/references.bib)
[[ -z $unended ]] || echo "FAILED: no line of its own ends: $unended"
[[ -z $missing ]] || echo "FAILED: not in docs/references.bib: $missing"
[[ -z $unused ]] || echo "FAILED: in docs/references.bib but cited nowhere: $unused"
[[ -z $twice ]] || echo "FAILED: twice in docs/references.bib: $twice"
[[ -z $missing$unused$twice$unended ]]
