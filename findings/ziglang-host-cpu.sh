#!/usr/bin/env bash
# Package: ziglang 0.17.1, the Zig compiler from PyPI, as a C compiler for extensions.
#
# `python -m ziglang cc`, with no option for a processor, makes code for the one that it
# runs on: of a machine that has AVX2, for AVX2. GCC and Clang make code for all
# processors of the architecture. Only -mcpu=baseline does that here.
#
# Why it matters: Zig is a compiler for where there is none but a Python index. A wheel or a
# container that it built on a new machine ends with an illegal instruction on an older one,
# in the middle of a run.
#
# Usage: findings/ziglang-host-cpu.sh
# Needs Python 3.11 or newer, PyPI, and an x86-64 processor with AVX2.
set -euo pipefail

grep -qw avx2 /proc/cpuinfo || { echo "This processor has no AVX2." >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check ziglang==0.17.1
cat >"$work/built_for.c" <<'C'
#ifdef __AVX2__
const char *built_for = "processors with AVX2";
#else
const char *built_for = "all x86-64 processors";
#endif
C

# built_for OPTION...: what the preprocessor leaves of the file
built_for() {
  "$work/venv/bin/python" -m ziglang cc -O3 "$@" -E -P "$work/built_for.c" |
    grep -o '"[^"]*"'
}
default=$(built_for)
baseline=$(built_for -mcpu=baseline)
echo "without an option: $default"
echo "-mcpu=baseline:    $baseline"

[[ $default == '"processors with AVX2"' ]]
[[ $baseline == '"all x86-64 processors"' ]]
