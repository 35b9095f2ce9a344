#!/usr/bin/env python3
"""The same random commands to `sidebloom serve` and to RedisBloom: the replies have to be the same, but for what docs/redis.md lists.

usage: python3 tests/redisbloom_parity.py SIDEBLOOM redisbloom.so [SEEDS [FIRST]]

Needs redis-server. Ends with code 1 at the first difference.
"""

import os
import random
import socket
import subprocess
import sys
import tempfile
import time


class Connection:
    """Sends commands and reads replies as they are, errors included."""

    def __init__(self, port, version):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")
        self.ask("HELLO", version)

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"".join(parts))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        mark, rest = line[:1], line[1:-2]
        if mark in b"*~":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        if mark == b"%":
            return {str(self.reply()): self.reply() for _ in range(int(rest))}
        if mark in b"$=":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if mark == b"_":
            return None
        if mark == b"-":
            return "error"  # Each has words of its own.
        return (mark + rest).decode()


def number(rng, usual):
    return rng.choice(usual) if rng.random() < 0.9 else rng.choice([0, -1, 1, 1 << 30, (1 << 30) + 1, 1 << 62, "x", "", "1.5", "+1", " 1"])


def command(rng):
    name = f"k{rng.randrange(6)}"
    item = lambda: f"word{rng.randrange(8)}"  # Few, so that a cuckoo filter of RedisBloom seldom takes one for another.
    items = lambda: [item() for _ in range(rng.randrange(0, 6))]
    kind = rng.choice(["BF", "CF"])
    choice = rng.randrange(40)
    if choice < 3:
        options = []
        if rng.random() < 0.4:
            options += ["EXPANSION", number(rng, [0, 1, 2, 4])]
        if rng.random() < 0.2:
            options += ["NONSCALING"]
        return ["BF.RESERVE", name, rng.choice([0.01, 0.001, 0.00001, 0, 1, "x", -1, 0.9]), number(rng, [1, 3, 10, 100]), *options]
    if choice < 6:
        options = []
        for option, usual in (("EXPANSION", [0, 1, 2, 3]), ("BUCKETSIZE", [1, 2, 4]), ("MAXITERATIONS", [1, 20, 65535])):
            if rng.random() < 0.3:
                options += [option, number(rng, usual)]
        return ["CF.RESERVE", name, number(rng, [16, 100, 1000]), *options]
    if choice < 12:
        return [f"{kind}.ADD", name, item()]
    if choice < 14:
        return ["BF.MADD", name, *items()]
    if choice < 16:
        return ["CF.ADDNX", name, item()]
    if choice < 20:
        command = rng.choice(["BF.INSERT", "CF.INSERT", "CF.INSERTNX"])
        options = []
        if rng.random() < 0.3:
            options += ["CAPACITY", number(rng, [10, 100])]
        if rng.random() < 0.2:
            options += ["NOCREATE"]
        if command == "BF.INSERT":
            if rng.random() < 0.2:
                options += ["ERROR", rng.choice([0.01, 0.5, 0, 2, "x"])]
            if rng.random() < 0.2:
                options += ["EXPANSION", number(rng, [1, 2])]
            if rng.random() < 0.1:
                options += ["NONSCALING"]
        return [command, name, *options, *(["ITEMS"] if rng.random() < 0.95 else []), *items()]
    if choice < 24:
        return [f"{kind}.MEXISTS", name, *items()]
    if choice < 26:
        return [f"{kind}.EXISTS", name, item()]
    if choice < 28:
        return ["CF.DEL", name, item()]
    if choice < 29:
        return ["CF.COUNT", name, item()]
    if choice < 32:
        return [f"{kind}.INFO", name, *([rng.choice(["CAPACITY", "size", "FILTERS", "ITEMS", "expansion", "x"])] if rng.random() < 0.5 else [])]
    if choice < 33:
        return ["BF.CARD", name]
    if choice < 34:
        return ["CF.COMPACT", name]
    return rng.choice([
        ["DEL", name], ["TYPE", name], ["EXISTS", name, f"k{rng.randrange(6)}"], ["RENAME", name, f"k{rng.randrange(6)}"],
        ["RENAMENX", name, f"k{rng.randrange(6)}"], ["EXPIRE", name, number(rng, [100])], ["PERSIST", name], ["TTL", name],
        ["EXPIREAT", name, rng.choice([1, 4102444800])], ["EXPIRE", name, 50, rng.choice(["NX", "XX", "GT", "LT"])], ["DBSIZE"],
        ["SELECT", rng.choice([0, 1, 15, 16, -1, "x"])], ["FLUSHDB"], ["UNLINK", name], ["EXPIRETIME", name], ["KEYS", "nothing*"],
        ["MULTI"], ["EXEC"], ["DISCARD"], ["WATCH", name], ["UNWATCH"],
    ])


def is_listed(words, ours, theirs):
    """Whether docs/redis.md lists the difference."""
    command = str(words[0]).upper()
    # A filter of the other kind: an error instead of 0.
    if ours == "error" and command in ("BF.EXISTS", "BF.MEXISTS", "CF.EXISTS", "CF.MEXISTS", "CF.COUNT"):
        return True
    return False


def play(ours, theirs, seed):
    rng = random.Random(seed)
    for connection in (ours, theirs):
        for words in (["DISCARD"], ["UNWATCH"], ["SELECT", 0], ["FLUSHALL"]):
            connection.ask(*words)
    done = []
    for _ in range(400):
        words = command(rng)
        done.append(words)
        mine, other = ours.ask(*words), theirs.ask(*words)
        if mine != other and not is_listed(words, mine, other):
            nested = isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other)
            if nested and words[0] == "EXEC" and all(a == b or a == "error" for a, b in zip(mine, other)):
                continue
            print(f"seed {seed}, command {len(done)}: {words}\n  sidebloom:  {mine}\n  RedisBloom: {other}\nbefore:")
            for words in done[-12:-1]:
                print("  ", words)
            return False
    return True


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    binary, module = map(os.path.abspath, sys.argv[1:3])
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    with tempfile.TemporaryDirectory() as directory:
        ours = subprocess.Popen([binary, "serve", os.path.join(directory, "filters"), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        port = int(ours.stdout.readline().rsplit(":", 1)[1])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            other_port = free.getsockname()[1]
        theirs = subprocess.Popen(["redis-server", "--port", str(other_port), "--save", "", "--loadmodule", module], cwd=directory, stdout=subprocess.DEVNULL)
        try:
            time.sleep(1)
            good = 0
            for seed in range(first, first + seeds):
                version = 2 + seed % 2
                good += play(Connection(port, version), Connection(other_port, version), seed)
            print(f"{good} of {seeds} seeds agree")
            sys.exit(good != seeds)
        finally:
            ours.kill()
            theirs.kill()
            ours.wait()
            theirs.wait()


if __name__ == "__main__":
    main()
