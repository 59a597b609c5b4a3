#!/usr/bin/env bash
# Builds an arm64 kernel with HZ=1000 from the distribution's source, for `--kernel hz1000`.
#
# Usage: scripts/kernel-hz1000.sh [VERSION]     7.2, 6.12, …; default: what Risetime knows best
# The source comes through the private apt of `risetime vm`, nothing of the system changes, and
# the kernel appears in the cache whole or not at all. About 15 minutes of CPU time, 4 GB of disk.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
known=7.2
cache=${RISETIME_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/risetime}
apt=$cache/apt/arm64/apt.conf

die() { echo "kernel-hz1000: $*" >&2; exit 3; }

packages=()
need() { command -v "$1" >/dev/null || packages+=("$2"); } # need COMMAND PACKAGE
need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
need gcc gcc
need make make
need flex flex
need bison bison
need bc bc
need xz xz-utils
need pahole dwarves
need python3 python3
echo '#include <gelf.h>' | gcc -E - >/dev/null 2>&1 || packages+=(libelf-dev)
[ "${#packages[@]}" -eq 0 ] || die "sudo apt-get install ${packages[*]}    # and then again"
[ -f "$apt" ] || die "no list of packages here: run \`risetime vm setup\` first"
export APT_CONFIG=$apt

mapfile -t there < <(apt-cache pkgnames linux-source- | sed -n 's/^linux-source-\([0-9.]*\)$/\1/p' | sort -V)
[ "${#there[@]}" -gt 0 ] || die "the mirror has no linux-source: run \`apt-get update\` with APT_CONFIG=$apt"
if [ $# -gt 0 ]; then
    version=$1
elif printf '%s\n' "${there[@]}" | grep -qx "$known"; then
    version=$known
else
    version=${there[-1]}
fi
printf '%s\n' "${there[@]}" | grep -qx "$version" || die "linux-source-$version: not on the mirror; there are ${there[*]}"

work=$cache/.work-$$
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$work/out"
cd "$work"
echo "fetching linux-source-$version (about 160 MB)"
apt-get download -q "linux-source-$version" >apt.log 2>&1 || die "$(tail -n 1 apt.log)"
dpkg-deb -x linux-source-*.deb root
tar -xf "root/usr/src/linux-source-$version.tar.xz"
rm -r root linux-source-*.deb
cd "linux-source-$version"

kernel() { make -s ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- KBUILD_BUILD_TIMESTAMP=2026-01-01 \
    KBUILD_BUILD_USER=risetime KBUILD_BUILD_HOST=risetime "$@"; }
kernel tinyconfig
scripts/kconfig/merge_config.sh -m .config "$here/hz1000.config" >"$work/merge.log"
kernel olddefconfig
# A word of the fragment that this version does not have (any more) is no error; a missing one of these is.
for option in HZ_1000 SMP CPUFREQ_DT CPU_FREQ_GOV_SCHEDUTIL ENERGY_MODEL UCLAMP_TASK FPROBE_EVENTS DEBUG_INFO_BTF SERIAL_AMBA_PL011_CONSOLE; do
    grep -q "^CONFIG_$option=y" .config || die "linux-source-$version: CONFIG_$option cannot be set"
done
echo "building (log: $work/build.log)"
kernel -j"$(nproc)" Image >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; die "the build failed"; }

cp arch/arm64/boot/Image .config "$work/out/"
to=$cache/kernels/hz1000
mkdir -p "$cache/kernels"
rm -rf "$to"
mv "$work/out" "$to"
echo "$to/Image    (risetime run … --backend vm --kernel hz1000)"
