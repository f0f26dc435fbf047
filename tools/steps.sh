# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Steps that are counted: sourced by ./dev and by .ci/run.
#
#   steps_open FOLDER            where the logs go
#   step NAME COMMAND...         runs it, in a shell of its own, and adds what it counts
#   steps_close                  the sum as "N passed, N failed, N skipped"; its status is 1 when anything failed
#
# A step counts as its last line "N passed, N failed, N skipped" says, without such a line as one by its status. One that
# fails counts as failed at least once, whatever it says. Its output is kept in FOLDER/NAME.log; with STEPS_SHOWN=1 all of
# it is shown as it comes, else the end of it when the step fails.

steps_open() {
    steps_folder=$1 steps_passed=0 steps_failed=0 steps_skipped=0 steps_broken=()
    mkdir -p "$steps_folder"
}

step() {
    local name=$1 start=$SECONDS code=0 log=$steps_folder/$1.log passed failed skipped counts
    shift
    if [ -n "${STEPS_SHOWN:-}" ]; then
        ("$@") 2>&1 </dev/null | tee "$log" || code=${PIPESTATUS[0]}
    else
        ("$@") >"$log" 2>&1 </dev/null || code=$?
    fi
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped *$/\1 \2 \3/p' "$log" | tail -n 1)
    read -r passed failed skipped <<<"${counts:-$((code == 0)) $((code != 0)) 0}"
    if ((code && !failed)); then failed=1; fi
    steps_passed=$((steps_passed + passed)) steps_failed=$((steps_failed + failed))
    steps_skipped=$((steps_skipped + skipped))
    printf '%-15s %5d passed %3d failed %3d skipped %5d s\n' "$name" "$passed" "$failed" "$skipped" $((SECONDS - start))
    ((failed)) || return 0
    steps_broken+=("$name")
    [ -n "${STEPS_SHOWN:-}" ] || tail -n 60 "$log" | sed 's/^/    /'
}

steps_close() {
    ((${#steps_broken[@]} == 0)) || echo "failed: ${steps_broken[*]} (logs in $steps_folder/)"
    echo "$steps_passed passed, $steps_failed failed, $steps_skipped skipped"
    ((!steps_failed))
}
