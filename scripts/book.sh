#!/usr/bin/env bash
# Binds README.md, ARCHITECTURE.md, CHANGELOG.md and docs/ into a book: target/book/index.html.
#
# Usage: scripts/book.sh
# Links between the pages go by their places in the repository, and mdBook takes pages of one directory only. So the
# pages are copied into one, in the same places, with the few files of code that they link to. mdBook is installed into
# target/tools the first time (some minutes).
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=0.5.4
pages=target/book-pages

mdbook=$(command -v mdbook || true)
if [ -z "$mdbook" ]; then
    mdbook=target/tools/bin/mdbook
    [ -x "$mdbook" ] || ${CARGO:-cargo} install mdbook --version "$version" --locked --no-default-features \
        --features search --root target/tools
fi

rm -rf "$pages"
mkdir -p "$pages"
cp -R ./*.md LICENSE docs "$pages"
# The summary stands in docs/, the book's in the directory above.
sed -e 's|](\.\./|](|' -e t -e 's|](|](docs/|' docs/SUMMARY.md >"$pages/SUMMARY.md"
rm "$pages/docs/SUMMARY.md"
sed -i 's|(SUMMARY.md)|(../README.md)|' "$pages/docs/index.md"
grep -ohE '\]\((\.\./)*(crates|workloads|platforms|policies|studies|findings)/[^)#]+\)' "$pages"/*.md "$pages"/docs/*.md "$pages"/docs/*/*.md |
    sed -E 's|^\]\((\.\./)*||; s|\)$||' | sort -u | while read -r file; do
    [ -f "$file" ] && install -D -m 644 "$file" "$pages/$file"
done
"$mdbook" build
echo "target/book/index.html"
