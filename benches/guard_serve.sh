#!/usr/bin/env bash
# BF.EXISTS of `sidebloom guard serve` against GET of redis-server, with the same keys and the same redis-benchmark, in alternating rounds.
#
#   benches/guard_serve.sh [SIDEBLOOM]        default: target/release/sidebloom
#
# Needs redis-server and redis-benchmark (Debian: redis-server, redis-tools). Each server has one core, the load another. Half of the
# queried keys exist. Environment: KEYS, ROUNDS, REQUESTS, CLIENTS, PIPELINE.
set -euo pipefail
binary=$(realpath "${1:-target/release/sidebloom}")
keys=${KEYS:-1000000} rounds=${ROUNDS:-5} requests=${REQUESTS:-1000000} clients=${CLIENTS:-50} pipeline=${PIPELINE:-16}
load_core=0 server_core=1
for tool in redis-server redis-benchmark redis-cli taskset; do
  command -v "$tool" > /dev/null || { echo "guard_serve: $tool is missing" >&2; exit 2; }
done

work=$(mktemp -d)
cleanup() { kill "${servers[@]}" 2> /dev/null || true; wait 2> /dev/null || true; rm -rf "$work"; }
servers=()
trap cleanup EXIT

mkfifo "$work/said"
taskset -c "$server_core" "$binary" guard serve "$work/songs.guard" --create --durability os --listen 127.0.0.1:0 > "$work/said" &
servers+=($!)
read -r _ _ address < "$work/said"
guard_port=${address##*:}
redis_port=$((guard_port > 60000 ? guard_port - 1000 : guard_port + 1000))
taskset -c "$server_core" redis-server --port "$redis_port" --save "" --appendonly no --dir "$work" > /dev/null &
servers+=($!)
until redis-cli -p "$redis_port" ping > /dev/null 2>&1; do sleep 0.1; done

# The keys as redis-benchmark writes them: twelve digits. Every second one is there.
fill() { # port, what to do with one key
  seq -f "$2" 0 2 $((keys * 2 - 1)) | redis-cli -p "$1" --pipe | tail -n 1
}
echo "filling both with $keys keys" >&2
fill "$guard_port" 'BF.ADD songs key:%012.0f' >&2
fill "$redis_port" 'SET key:%012.0f xxx' >&2

cpu() { # process: its seconds on the processor, threads included
  awk -v ticks="$(getconf CLK_TCK)" '{ sub(/^.*\) /, ""); print ($12 + $13) / ticks }' "/proc/$1/stat"
}
ask() { # port, command…
  local port=$1; shift
  taskset -c "$load_core" redis-benchmark -p "$port" -c "$clients" -P "$pipeline" -n "$requests" -r $((keys * 2)) --csv "$@" |
    tail -n 1 | cut -d, -f2- | tr -d '"' | awk -F, '{ print $1 }'
}
measure() { # name, process, port, command…
  local name=$1 process=$2 before; shift 2
  before=$(cpu "$process")
  ask "$@" >> "$work/$name"
  awk -v b="$before" -v a="$(cpu "$process")" -v n="$requests" 'BEGIN { print (a - b) / n * 1e6 }' >> "$work/$name.cpu"
}
median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
for ((round = 1; round <= rounds; round++)); do
  # Whoever comes second may find a warmer machine: in turns.
  if ((round % 2)); then order="redis guard"; else order="guard redis"; fi
  for which in $order; do
    case $which in
      guard) measure guard "${servers[0]}" "$guard_port" BF.EXISTS songs key:__rand_int__ ;;
      redis) measure redis "${servers[1]}" "$redis_port" GET key:__rand_int__ ;;
    esac
  done
done

redis=$(median < "$work/redis") guard=$(median < "$work/guard")
printf '%d keys, half of the queried ones exist; %d clients, %d commands at once; medians of %d rounds\n' \
  "$keys" "$clients" "$pipeline" "$rounds"
printf '%-24s %12s %14s   %s\n' "" "per second" "us of CPU each" "all rounds, per second"
row() { # title, name
  printf '%-24s %12.0f %14.2f   %s\n' "$1" "$(median < "$work/$2")" "$(median < "$work/$2.cpu")" \
    "$(sort -n "$work/$2" | cut -d. -f1 | paste -sd' ')"
}
row "redis-server GET" redis
row "guard serve BF.EXISTS" guard
awk -v r="$redis" -v g="$guard" 'BEGIN { printf "redis-server / guard serve: %.2f\n", r / g }'
