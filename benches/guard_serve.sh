#!/usr/bin/env bash
# `sidebloom guard serve` and `sidebloom serve` against redis-server's GET and SET, and against RedisBloom if its module is given: the same keys
# and the same redis-benchmark, in alternating rounds.
#
#   benches/guard_serve.sh [SIDEBLOOM [redisbloom.so]]        default: target/release/sidebloom
#
# Needs redis-server and redis-benchmark (Debian: redis-server, redis-tools). Each server has one core, the load another. Half of the
# queried keys exist; added keys are random, and mostly new. Nobody syncs: `--durability os`, and Redis without a log.
# Environment: KEYS, ROUNDS, REQUESTS, CLIENTS, PIPELINE.
set -euo pipefail
binary=$(realpath "${1:-target/release/sidebloom}") module=${2:+$(realpath "$2")}
keys=${KEYS:-1000000} rounds=${ROUNDS:-5} requests=${REQUESTS:-1000000} clients=${CLIENTS:-50} pipeline=${PIPELINE:-16}
load_core=0 server_core=1
for tool in redis-server redis-benchmark redis-cli taskset; do
  command -v "$tool" > /dev/null || { echo "guard_serve: $tool is missing" >&2; exit 2; }
done

work=$(mktemp -d)
cleanup() { kill "${process[@]}" 2> /dev/null || true; wait 2> /dev/null || true; rm -rf "$work"; }
declare -A process port
trap cleanup EXIT

start() { # name, command…
  local name=$1 address; shift
  mkfifo "$work/said"
  taskset -c "$server_core" "$binary" "$@" --durability os --listen 127.0.0.1:0 > "$work/said" &
  process[$name]=$!
  read -r _ _ address < "$work/said"
  rm "$work/said"
  port[$name]=${address##*:}
}
start_redis() { # name, options…
  local name=$1; shift
  port[$name]=$((20000 + RANDOM % 10000))
  taskset -c "$server_core" redis-server --port "${port[$name]}" --save "" --appendonly no --dir "$work" "$@" > /dev/null &
  process[$name]=$!
  until redis-cli -p "${port[$name]}" ping > /dev/null 2>&1; do sleep 0.1; done
}
start guard guard serve "$work/songs.guard" --create
start serve serve "$work/filters"
start_redis redis
[ -z "$module" ] || start_redis redisbloom --loadmodule "$module"

# The keys as redis-benchmark writes them: twelve digits. Every second one is there.
fill() { # server, what to do with one key
  seq -f "$2" 0 2 $((keys * 2 - 1)) | redis-cli -p "${port[$1]}" --pipe | tail -n 1
}
echo "filling each with $keys keys" >&2
for name in "${!port[@]}"; do
  case $name in
    redis) fill redis 'SET key:%012.0f xxx' >&2 ;;
    guard) fill guard 'BF.ADD songs key:%012.0f' >&2 ;;
    *) redis-cli -p "${port[$name]}" BF.RESERVE songs 0.01 "$keys" > /dev/null; fill "$name" 'BF.ADD songs key:%012.0f' >&2 ;;
  esac
done

cpu() { # process: its seconds on the processor, threads included
  awk -v ticks="$(getconf CLK_TCK)" '{ sub(/^.*\) /, ""); print ($12 + $13) / ticks }' "/proc/$1/stat"
}
measure() { # title, server, range of keys, command…
  local title=$1 server=$2 range=$3 before; shift 3
  before=$(cpu "${process[$server]}")
  taskset -c "$load_core" redis-benchmark -p "${port[$server]}" -c "$clients" -P "$pipeline" -n "$requests" -r "$range" --csv "$@" |
    tail -n 1 | cut -d, -f2- | tr -d '"' | awk -F, '{ print $1 }' >> "$work/$title"
  awk -v b="$before" -v a="$(cpu "${process[$server]}")" -v n="$requests" 'BEGIN { print (a - b) / n * 1e6 }' >> "$work/$title.cpu"
}
median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
rows=("redis-server GET" "guard serve BF.EXISTS" "serve BF.EXISTS" "redis-server SET" "serve BF.ADD")
[ -z "$module" ] || rows=("RedisBloom BF.EXISTS" "RedisBloom BF.ADD" "${rows[@]}")
for ((round = 1; round <= rounds; round++)); do
  # Whoever comes second may find a warmer machine: in turns.
  if ((round % 2)); then order=("${rows[@]}"); else mapfile -t order < <(printf '%s\n' "${rows[@]}" | tac); fi
  for title in "${order[@]}"; do
    case $title in
      "redis-server GET") measure "$title" redis $((keys * 2)) GET key:__rand_int__ ;;
      "redis-server SET") measure "$title" redis 100000000000 SET "new:__rand_int__" x ;;
      "guard serve BF.EXISTS") measure "$title" guard $((keys * 2)) BF.EXISTS songs key:__rand_int__ ;;
      "serve BF.EXISTS") measure "$title" serve $((keys * 2)) BF.EXISTS songs key:__rand_int__ ;;
      "serve BF.ADD") measure "$title" serve 100000000000 BF.ADD "added$round" "new:__rand_int__" ;;
      "RedisBloom BF.EXISTS") measure "$title" redisbloom $((keys * 2)) BF.EXISTS songs key:__rand_int__ ;;
      "RedisBloom BF.ADD") measure "$title" redisbloom 100000000000 BF.ADD "added$round" "new:__rand_int__" ;;
    esac
  done
done

printf '%d keys, half of the queried ones exist; %d clients, %d commands at once; medians of %d rounds\n' \
  "$keys" "$clients" "$pipeline" "$rounds"
printf '%-24s %12s %14s   %s\n' "" "per second" "us of CPU each" "all rounds, per second"
for title in "${rows[@]}"; do
  printf '%-24s %12.0f %14.2f   %s\n' "$title" "$(median < "$work/$title")" "$(median < "$work/$title.cpu")" \
    "$(sort -n "$work/$title" | cut -d. -f1 | paste -sd' ')"
done
