#!/usr/bin/env bash
# RedisBloom's own flow tests of Bloom and cuckoo filters, from outside, against `sidebloom serve`, and against RedisBloom itself if its
# module is given.
#
#   tests/redisbloom_flow.sh REDISBLOOM SIDEBLOOM [redisbloom.so]
#
# REDISBLOOM is a clone of https://github.com/RedisBloom/RedisBloom; docs/redis.md names the commit whose results it has. Nothing of it is in
# this repository, whose licence differs. Needs RLTest and redis (pip install RLTest redis packaging), and redis-server for the module.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
clone=$(realpath "$1") binary=$(realpath "$2") module=${3:+$(realpath "$3")}
work=$(mktemp -d)
server=
cleanup() { [ -z "$server" ] || kill "$server" 2> /dev/null || true; wait 2> /dev/null || true; rm -rf "$work"; }
trap cleanup EXIT
cp -r "$clone/tests/flow" "$work/flow"
# What the tests ask of another package: on which system they run.
cat > "$work/flow/paella.py" << 'PAELLA'
import platform


class Platform:
    os, osnick, arch = "linux", "linux", platform.machine()
PAELLA
cd "$work/flow"
# Ours are in our own words.
sed -i "s/if 'summary' in docs:/if False:/" docs_utils.py
tests=(--test test_overall.py --test test_cuckoo.py --test test_resp3.py --test test_docs_help.py)
export PYTHONPATH=$work/flow
run() { # name, options of RLTest
  local name=$1; shift
  python3 -m RLTest "${tests[@]}" --no-progress --no-output-catch "$@" > "$work/$name.log" 2>&1 || true
  # The tests that failed, and how many there were.
  sed 's/\x1b\[[0-9;]*m//g' "$work/$name.log" | grep -aE '^[[:space:]]+test_[^ ]*[^ :][[:space:]]*$|^Total Tests' || true
  cp "$work/$name.log" "${OUT:-$work}/$name.log" 2> /dev/null || true
}
if [ -n "$module" ]; then
  echo "== RedisBloom"
  run redisbloom --module "$module"
fi
mkfifo "$work/said"
"$binary" serve "$work/filters" --listen 127.0.0.1:0 > "$work/said" &
server=$!
read -r _ _ address < "$work/said"
echo "== sidebloom"
run sidebloom --env existing-env --existing-env-addr "$address"
