#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The simulator's headers under the languages that programs for AscendCL are written in. Usage: COMPILER INCLUDE LIBRARY.
set -euo pipefail
compiler=$1 include=$2 library=$3
source=$(dirname "$(readlink -f "$0")")/condition_sample.c
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
warnings=(-pedantic -Wall -Wextra -Wno-missing-field-initializers -Werror)
for language in c/c99 c/c11 c++/c++11 c++/c++17; do
    if ! echo 'int main() {}' | "$compiler" -x "${language%/*}" "-std=${language#*/}" -fsyntax-only - 2>"$folder/why"; then
        [[ $language == c++/* ]] || { cat "$folder/why" >&2; exit 1; }
        echo "$language: left out, the compiler has no C++"
        continue
    fi
    "$compiler" -x "${language%/*}" "-std=${language#*/}" "${warnings[@]}" -I "$include" -c "$source" -o "$folder/sample.o"
    "$compiler" "$folder/sample.o" "$library" -Wl,-rpath,"$(dirname "$library")" -o "$folder/sample"
    "$folder/sample"
    echo "$language: compiled, linked, run"
done
