#!/bin/sh
# Runs test programs, each in its own process with a timeout. Environment: BUILD, SAN, RUN (a launcher such as qemu-aarch64).
# A program named xfail_* must fail: it proves that the sanitizer is really on.
passed=0 failed=0 skipped=0
for program in "$@"; do
    name=$(basename "$program")
    output=$(timeout 300 ${RUN:-} "$program" 2>&1 </dev/null)
    code=$?
    case $name in
    xfail_*)
        if [ $code -ne 0 ] && printf '%s' "$output" | grep -q 'AddressSanitizer'; then code=0; else code=1; fi
        ;;
    esac
    case $code in
    0) passed=$((passed + 1)); echo "ok    $name" ;;
    77) skipped=$((skipped + 1)); echo "skip  $name"; printf '%s\n' "$output" ;;
    *) failed=$((failed + 1)); echo "FAIL  $name (exit $code)"; printf '%s\n' "$output" ;;
    esac
done
echo "C tests: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
