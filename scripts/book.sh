#!/usr/bin/env bash
# Binds README.md, ARCHITECTURE.md, CHANGELOG.md and docs/ into a book: target/book/index.html.
#
# Usage: scripts/book.sh
# Links between the pages go by their places in the repository, and mdBook takes pages of one directory only. So the
# pages are copied into one, in the same places, with the few files of code that they link to. mdBook is installed into
# target/tools the first time (some minutes). A page of all options is made of what `risetime help` prints.
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
# A README.md becomes index.html, and mdBook leaves links to it as they are.
mv "$pages/README.md" "$pages/index.md"
find "$pages" -name '*.md' -exec sed -i -E 's#\]\(((\.\./)*)README\.md#](\1index.md#; s#\]\(SUMMARY\.md\)#](../index.md)#' {} +
grep -ohE '\]\((\.\./)*(crates|workloads|platforms|policies|studies|findings)/[^)#]+\)' "$pages"/*.md "$pages"/docs/*.md "$pages"/docs/*/*.md |
    sed -E 's|^\]\((\.\./)*||; s|\)$||' | sort -u | while read -r file; do
    [ -f "$file" ] && install -D -m 644 "$file" "$pages/$file"
done
# What each command takes, in the words of its help, behind the page of commands by purpose.
risetime() { ${RISETIME:-${CARGO:-cargo} run --profile demo --locked --quiet -p risetime --} "$@"; }
risetime man "$pages/man" >/dev/null
{
    echo '# Every command and its options'
    echo
    echo 'What `risetime help` prints of each command. Which command is for what: [commands.md](commands.md).'
    for file in "$pages"/man/*.1; do
        words=$(basename "$file" .1 | sed 's/^risetime-\{0,1\}//; s/-/ /g')
        printf '\n## risetime%s\n\n```text\n' "${words:+ $words}"
        # shellcheck disable=SC2086 # a word an argument
        risetime help $words
        echo '```'
    done
} >"$pages/docs/options.md"
rm -r "$pages/man"
sed -i 's|^\(- \[Settings and policies\]\)|- [Every command and its options](docs/options.md)\n\1|' "$pages/SUMMARY.md"
"$mdbook" build
echo "target/book/index.html"
