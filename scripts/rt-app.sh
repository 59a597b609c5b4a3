#!/usr/bin/env bash
# scripts/rt-app.sh COMMAND…: runs a command with the packaged rt-app on its path; where it is sourced, sets the path.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# rt-app 1.0-1, which Debian packages: unpacked and not installed where it is not there.
rtapp=$(realpath -m "${CARGO_TARGET_DIR:-target}")/tools/rt-app
if ! command -v rt-app >/dev/null && [ ! -x "$rtapp/usr/bin/rt-app" ]; then
    mkdir -p "$rtapp" && (cd "$rtapp" && apt-get download -q rt-app libjson-c5 &&
        for package in ./*.deb; do dpkg-deb -x "$package" . || exit 1; done)
fi
if ! command -v rt-app >/dev/null && [ -x "$rtapp/usr/bin/rt-app" ]; then
    export PATH="$rtapp/usr/bin:$PATH"
    LD_LIBRARY_PATH="$(dirname "$(find "$rtapp" -name 'libjson-c.so.5' -print -quit)")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export LD_LIBRARY_PATH
fi

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    exec "$@"
fi
