#!/usr/bin/env python3
"""`sidebloom guard serve` asked by the clients that people use: redis-py and redis-cli.

usage: python3 tests/redis_clients.py SIDEBLOOM

Needs the redis package (pip install redis) and redis-cli (Debian's redis-tools). Ends with code 1 at the first difference.
"""

import os
import subprocess
import sys
import tempfile
import threading

import redis

PASSWORD = "open sesame"


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, expected {wanted!r}")
    print(f"{what}: ok")


def refused(what, call, wanted):
    try:
        found = call()
    except redis.ResponseError as error:
        check(what, str(error), wanted)
    else:
        sys.exit(f"{what}: {found!r}, expected the error {wanted!r}")


class Server:
    def __init__(self, binary, directory, *options, **environment):
        guard = os.path.join(directory, "songs.guard")
        command = [binary, "guard", "serve", guard, "--create", "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        line = self.process.stdout.readline().strip()
        if not line.startswith("listening on 127.0.0.1:"):
            sys.exit(f"the server said {line!r}")
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(timeout=30)
        check("the server ends on SIGTERM", code, 0)

    def cli(self, *words, stdin=None, environment=None):
        command = ["redis-cli", "-p", str(self.port), *words]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=60, env={**os.environ, **(environment or {})}
        )
        return (done.stdout + done.stderr).strip()


def redis_py(server, protocol):
    name = f"redis-py, RESP{protocol}"
    client = redis.Redis(port=server.port, protocol=protocol, decode_responses=True, client_name="tester")
    bf, cf = client.bf(), client.cf()
    key = f"key {protocol}"
    check(f"{name}: ping", client.ping(), True)
    check(f"{name}: echo", client.echo("Beyoncé"), "Beyoncé")
    check(f"{name}: client_getname", client.client_getname(), "tester")
    before = bf.card("songs")
    check(f"{name}: bf.exists, missing", int(bf.exists("songs", key)), 0)
    check(f"{name}: bf.add", int(bf.add("songs", key)), 1)
    check(f"{name}: bf.add again", int(bf.add("songs", key)), 0)
    check(f"{name}: bf.exists", int(bf.exists("songs", key)), 1)
    check(f"{name}: bf.madd", [int(n) for n in bf.madd("songs", key, f"b{protocol}", f"c{protocol}")], [0, 1, 1])
    check(f"{name}: bf.mexists", [int(n) for n in bf.mexists("songs", key, "missing", f"b{protocol}")], [1, 0, 1])
    check(f"{name}: bf.card", bf.card("songs"), before + 3)
    info = bf.info("songs")
    items = info["Number of items inserted"] if isinstance(info, dict) else info.insertedNum
    check(f"{name}: bf.info", items, before + 3)
    refused(f"{name}: bf.create", lambda: bf.create("songs", 0.01, 1000), "item exists")
    refused(f"{name}: another filter", lambda: bf.add("other", "x"), "not found")
    check(f"{name}: cf.add", int(cf.add("songs", key)), 1)
    check(f"{name}: cf.count", cf.count("songs", key), 2)
    check(f"{name}: cf.addnx", int(cf.addnx("songs", key)), 0)
    check(f"{name}: cf.delete", [int(cf.delete("songs", key)) for _ in range(3)], [1, 1, 0])
    check(f"{name}: cf.exists", int(cf.exists("songs", key)), 0)
    check(f"{name}: cf.mexists", [int(n) for n in cf.mexists("songs", key, f"c{protocol}")], [0, 1])
    info = cf.info("songs")
    items = info["Number of items inserted"] if isinstance(info, dict) else info.insertedNum
    check(f"{name}: cf.info", items, before + 2)
    refused(f"{name}: unknown command", lambda: client.execute_command("NOPE", "a"),
            "unknown command 'NOPE', with args beginning with: 'a' ")
    check(f"{name}: info", client.info("server")["tcp_port"], server.port)
    expiring = [int(client.execute_command("BF.ADD", "songs", f"ex {protocol}", "EX", n)) for n in (100, 9)]
    check(f"{name}: an item that expires", expiring, [1, 0])
    check(f"{name}: command_count", client.command_count(), len(client.command()))

    pipe = client.pipeline(transaction=False)
    for n in range(500):
        pipe.execute_command("BF.ADD", "songs", f"pipe {protocol} {n}")
    for n in range(500):
        pipe.execute_command("BF.EXISTS", "songs", f"pipe {protocol} {n}")
    check(f"{name}: a pipeline", [int(n) for n in pipe.execute()], [1] * 1000)

    pipe = client.pipeline()  # As it is by default: MULTI and EXEC.
    pipe.bf().add("songs", f"multi {protocol}")
    pipe.bf().exists("songs", f"multi {protocol}")
    pipe.cf().delete("songs", f"multi {protocol}")
    pipe.bf().exists("songs", f"multi {protocol}")
    check(f"{name}: a pipeline with MULTI", [int(n) for n in pipe.execute()], [1, 1, 1, 0])
    pipe = client.pipeline()
    pipe.bf().add("songs", f"multi {protocol}")
    pipe.execute_command("NOPE")
    try:
        pipe.execute()
        sys.exit("a transaction with an unknown command was done")
    except redis.ResponseError as error:
        check(f"{name}: an aborted pipeline", "unknown command" in str(error), True)
    check(f"{name}: nothing of it is done", int(bf.exists("songs", f"multi {protocol}")), 0)

    items = [f"insert {protocol} {n}" for n in range(3)]
    inserted = bf.insert("songs", items, capacity=1000, error=0.01, noCreate=True, expansion=2)
    check(f"{name}: bf.insert", [int(n) for n in inserted], [1, 1, 1])
    check(f"{name}: cf.insert", [int(n) for n in cf.insert("songs", items, capacity=1000, nocreate=True)], [1, 1, 1])
    check(f"{name}: cf.insertnx", [int(n) for n in cf.insertnx("songs", [*items, f"nx {protocol}"])], [0, 0, 0, 1])
    check(f"{name}: cf.count", cf.count("songs", items[0]), 2)
    check(f"{name}: cf.delete", [int(cf.delete("songs", item)) for item in items], [1, 1, 1])

    raw = redis.Redis(port=server.port, protocol=protocol)
    every_byte = bytes(range(256))
    check(f"{name}: bytes", [int(raw.bf().add("songs", every_byte + key.encode())) for _ in range(2)], [1, 0])
    raw.close()
    client.close()


def many_threads(server):
    pool = redis.ConnectionPool(port=server.port, max_connections=64)
    told = []

    def add():
        bf = redis.Redis(connection_pool=pool).bf()
        told.extend(int(bf.add("songs", f"shared {n}")) for n in range(50))

    threads = [threading.Thread(target=add) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("16 threads of redis-py: each key is new once", sum(told), 50)
    pool.disconnect()


def redis_cli(server):
    check("redis-cli: PING", server.cli("PING"), "PONG")
    check("redis-cli: BF.ADD", server.cli("BF.ADD", "songs", "Gracias a la vida"), "1")
    check("redis-cli: BF.EXISTS", server.cli("BF.EXISTS", "songs", "Gracias a la vida"), "1")
    check("redis-cli -3: BF.MEXISTS", server.cli("-3", "BF.MEXISTS", "songs", "Gracias a la vida", "nobody"), "(true)\n(false)")
    check("redis-cli: BF.RESERVE", server.cli("BF.RESERVE", "songs", "0.01", "1000"), "ERR item exists")
    check("redis-cli: CF.COUNT", server.cli("CF.COUNT", "songs", "Gracias a la vida"), "1")
    check("redis-cli: lines of input", server.cli(stdin="PING\nBF.EXISTS songs nobody\nSELECT 0\n"), "PONG\n0\nOK")
    adds = "".join(f"BF.ADD songs pipe{n}\r\n" for n in range(2000))
    check("redis-cli --pipe", server.cli("--pipe", stdin=adds).splitlines()[-1], "errors: 0, replies: 2000")
    latency = server.cli("--latency", "--raw", "-i", "1")
    check("redis-cli --latency", len(latency.split()) >= 4, True)


def password(binary):
    with tempfile.TemporaryDirectory() as directory:
        with Server(binary, directory, SIDEBLOOM_GUARD_PASSWORD=PASSWORD) as server:
            for protocol in (2, 3):
                client = redis.Redis(port=server.port, protocol=protocol, password=PASSWORD)
                check(f"redis-py, RESP{protocol}: password", client.ping(), True)
                named = redis.Redis(port=server.port, protocol=protocol, username="default", password=PASSWORD)
                check(f"redis-py, RESP{protocol}: user and password", named.ping(), True)
                wrong = redis.Redis(port=server.port, protocol=protocol, password="no")
                try:
                    wrong.ping()
                    sys.exit("a wrong password is let in")
                except redis.AuthenticationError:
                    print(f"redis-py, RESP{protocol}: wrong password: ok")
            check("redis-cli: no password", server.cli("PING"), "NOAUTH Authentication required.")
            check("redis-cli: password", server.cli("PING", environment={"REDISCLI_AUTH": PASSWORD}), "PONG")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    binary = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        with Server(binary, directory) as server:
            for protocol in (2, 3):
                redis_py(server, protocol)
            many_threads(server)
            redis_cli(server)
    password(binary)
    print(f"redis-py {redis.__version__} and {subprocess.run(['redis-cli', '--version'], capture_output=True, text=True).stdout.strip()}: all ok")


if __name__ == "__main__":
    main()
