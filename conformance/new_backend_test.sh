#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of docs/new-backend.md, all blocks in one shell. Usage: SOURCE BUILD.
set -euo pipefail
RONDO=$1 BUILD=$2
export RONDO BUILD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$RONDO/docs/new-backend.md" >"$folder/commands"
[ "$(grep -c conformance "$folder/commands")" -ge 4 ]
cd "$folder"
bash -euo pipefail "$folder/commands"
