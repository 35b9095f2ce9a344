#!/usr/bin/env bash
# The C programs under valgrind and under AddressSanitizer: invalid reads and writes, double frees and leaks. The second one needs a
# nightly toolchain, as the Rust code is then built with the sanitizer too.
set -euo pipefail
cd "$(dirname "$0")/../../.."
crate=crates/capi target=${CARGO_TARGET_DIR:-target}
out=$target/capi-memory
mkdir -p "$out"

# Compiles every program of a kind into $out: COMPILE KIND LIBRARY FLAG...
compile() {
  local kind=$1 library=$2 source
  shift 2
  for source in "$crate"/tests/c/*.c "$crate"/examples/songs.c; do
    gcc -std=c99 -g -O1 -Wall -Wextra -Werror -pedantic -D_DEFAULT_SOURCE -D_POSIX_C_SOURCE=200809L "$@" -I"$crate/include" "$source" \
      "$library" -lpthread -ldl -lm -o "$out/$kind-$(basename "$source" .c)"
  done
}

# Memory that belongs to threads of the parent is lost in a forked process. The other programs show the leaks.
valgrind() {
  local kinds=definite,indirect,possible
  case $1 in *-fork) kinds=none ;; esac
  command valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=$kinds --fair-sched=yes \
    --suppressions="$crate/tests/valgrind.supp" "$@"
}

# Runs every program of a kind, each in a new directory: RUN KIND COMMAND...
failed=0
run() {
  local kind=$1 program dir
  shift
  for program in "$out/$kind"-*; do
    case $program in *.log) continue ;; esac
    dir=$(mktemp -d)
    if "$@" "$program" "$dir" > "$program.log" 2>&1
    then echo "$kind: ${program##*-} passed"
    else echo "$kind: ${program##*-} FAILED"; cat "$program.log"; failed=$((failed + 1)); fi
    rm -rf "$dir"
  done
}

rm -f "$out"/*
cargo build --locked -p sidebloom-capi
compile valgrind "$target/debug/libsidebloom_capi.a"
# Everything takes some 30 times as long.
SIDEBLOOM_TEST_STEPS=1500 run valgrind valgrind

if rustup toolchain list 2> /dev/null | grep -q ^nightly; then
  host=$(rustc -vV | sed -n 's/^host: //p')
  # With a target of its own, build scripts and macros are built without the sanitizer.
  RUSTFLAGS=-Zsanitizer=address cargo +nightly build --locked -p sidebloom-capi --target-dir "$target/asan" --target "$host"
  compile asan "$target/asan/$host/debug/libsidebloom_capi.a" -fsanitize=address -fno-omit-frame-pointer
  # A program that has no memory is an error of its own, not the sanitizer's.
  ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 run asan env
else
  echo "SKIPPED: AddressSanitizer, which needs a nightly toolchain"
fi
[ "$failed" = 0 ] || { echo "$failed programs failed"; exit 1; }
