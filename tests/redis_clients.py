#!/usr/bin/env python3
"""`sidebloom guard serve` and `sidebloom serve` asked by the clients that people use: redis-py and redis-cli.

usage: python3 tests/redis_clients.py SIDEBLOOM

Needs the redis package (pip install redis) and redis-cli (Debian's redis-tools). Ends with code 1 at the first difference.
"""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

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
    def __init__(self, binary, directory, *options, filters=False, **environment):
        if filters:
            what = ["serve", os.path.join(directory, "filters")]
        else:
            what = ["guard", "serve", os.path.join(directory, "songs.guard"), "--create"]
        command = [binary, *what, "--listen", "127.0.0.1:0", *options]
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


def filters(server, protocol):
    """Named filters: what redis-py's bf() and cf() do, names, expiry, and transactions with WATCH."""
    name = f"redis-py, RESP{protocol}"
    client = redis.Redis(port=server.port, protocol=protocol, decode_responses=True)
    bf, cf = client.bf(), client.cf()
    client.flushall()
    check(f"{name}: bf.create", bf.create("b", 0.01, 1000), True)
    refused(f"{name}: bf.create again", lambda: bf.create("b", 0.01, 1000), "item exists")
    check(f"{name}: bf.add creates", int(bf.add("other", "a")), 1)
    check(f"{name}: bf.insert", [int(n) for n in bf.insert("b", ["a", "b"], capacity=10)], [1, 1])
    refused(f"{name}: bf.insert, nocreate", lambda: bf.insert("new", ["a"], noCreate=True), "not found")
    check(f"{name}: bf.mexists", [int(n) for n in bf.mexists("b", "a", "x")], [1, 0])
    check(f"{name}: bf.mexists, missing", [int(n) for n in bf.mexists("missing", "a", "x")], [0, 0])
    check(f"{name}: bf.card", [bf.card("b"), bf.card("missing")], [2, 0])
    info = bf.info("b")
    capacity = info["Capacity"] if isinstance(info, dict) else info.capacity
    check(f"{name}: bf.info", capacity, 1000)
    check(f"{name}: cf.create", cf.create("c", 1000, bucket_size=4, expansion=2, max_iterations=10), True)
    check(f"{name}: cf.insert", [int(n) for n in cf.insert("c", ["a", "a", "b"])], [1, 1, 1])
    check(f"{name}: cf.count", cf.count("c", "a"), 2)
    check(f"{name}: cf.delete", int(cf.delete("c", "a")), 1)
    info = cf.info("c")
    deleted = info["Number of items deleted"] if isinstance(info, dict) else info.deletedNum
    check(f"{name}: cf.info", deleted, 1)
    refused(f"{name}: the other kind", lambda: cf.add("b", "a"), "WRONGTYPE Operation against a key holding the wrong kind of value")
    chunks, position = [], 0
    binary = redis.Redis(port=server.port, protocol=protocol)
    while True:
        position, chunk = binary.bf().scandump("b", position)
        if position == 0:
            break
        chunks.append((position, chunk))
    check(f"{name}: bf.loadchunk", all(binary.bf().loadchunk("copy", *chunk) for chunk in chunks), True)
    check(f"{name}: the copy", [int(n) for n in bf.mexists("copy", "a", "b", "x")], [1, 1, 0])
    binary.close()
    check(f"{name}: type", [client.type("b"), client.type("c"), client.type("x")], ["MBbloom--", "MBbloomCF", "none"])
    check(f"{name}: scan_iter", sorted(client.scan_iter()), ["b", "c", "copy", "other"])
    check(f"{name}: rename and delete", [client.rename("other", "o"), client.delete("o", "x")], [True, 1])
    check(f"{name}: expire and ttl", [client.expire("b", 100), client.ttl("b"), client.persist("b"), client.ttl("b")], [True, 100, True, -1])

    def add_once(pipe):
        known = int(pipe.execute_command("BF.EXISTS", "watched", "a"))
        pipe.multi()
        if not known:
            pipe.execute_command("BF.ADD", "watched", "a")

    check(f"{name}: transaction()", client.transaction(add_once, "watched"), [1])
    check(f"{name}: transaction() again", client.transaction(add_once, "watched"), [])
    with client.pipeline() as pipe:
        pipe.watch("watched")
        bf.add("watched", "b")
        pipe.multi()
        pipe.execute_command("BF.ADD", "watched", "c")
        try:
            pipe.execute()
            sys.exit("a transaction ran although its filter had changed")
        except redis.WatchError:
            print(f"{name}: WatchError: ok")
    check(f"{name}: config", client.config_get("bf-*")["bf-error-rate"], "0.01")
    check(f"{name}: memory_usage", client.memory_usage("b") > 100, True)
    check(f"{name}: slowlog", client.slowlog_len() >= 0, True)
    check(f"{name}: client_list", len(client.client_list()) >= 1, True)
    check(f"{name}: time", len(client.time()), 2)
    check(f"{name}: database 3", redis.Redis(port=server.port, protocol=protocol, db=3).dbsize(), 0)
    client.close()


def tls(binary):
    """Needs a build with the feature, and openssl."""
    if shutil.which("openssl") is None:
        return print("TLS: skipped, since openssl is missing")
    with tempfile.TemporaryDirectory() as directory:
        def certify(name, *options):
            key, certificate = os.path.join(directory, f"{name}.key"), os.path.join(directory, f"{name}.pem")
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                 "-keyout", key, "-out", certificate, "-subj", f"/CN={name}", *options],
                check=True, capture_output=True)
            os.chmod(key, 0o600)
            return {"key": key, "certificate": certificate}

        authority = certify("authority")
        signed = ("-CA", authority["certificate"], "-CAkey", authority["key"], "-addext", "basicConstraints=critical,CA:FALSE")
        own = certify("localhost", *signed, "-addext", "subjectAltName=DNS:localhost")
        mine = certify("client", *signed)
        certified = ("--tls-cert", own["certificate"], "--tls-key", own["key"])
        hostile_tls(binary, directory, certified)
        with Server(binary, directory, *certified, "--tls-client-ca", authority["certificate"], filters=True) as server:
            options = {"host": "localhost", "port": server.port, "ssl": True, "ssl_ca_certs": authority["certificate"]}
            client = redis.Redis(**options, ssl_certfile=mine["certificate"], ssl_keyfile=mine["key"])
            check("TLS, with a client's certificate", int(client.bf().add("f", "a")), 1)
            items = [f"item {n}" for n in range(50_000)]
            check("TLS: a large request", sum(map(int, client.bf().madd("f", *items))), 50_000)
            for what, without in (("a client's certificate", redis.Redis(**options)), ("TLS", redis.Redis(port=server.port, socket_timeout=5))):
                try:
                    without.ping()
                    sys.exit(f"a client without {what} is let in")
                except redis.ConnectionError:
                    print(f"TLS: refused without {what}: ok")
                except redis.TimeoutError:
                    print(f"TLS: refused without {what}: ok")


def hostile_tls(binary, directory, options):
    """Clients that stop within a record or within the handshake."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with Server(binary, directory, *options, "--request-timeout", "1", filters=True) as server:
        def connect():
            return context.wrap_socket(socket.create_connection(("localhost", server.port)))

        def field(name):
            asking.sendall(b"INFO\r\n")
            text = b""
            while not text.endswith(b"\r\n\r\n") and b"# Keyspace" not in text:
                text += asking.recv(1 << 16)
            return int(text.split(name.encode() + b":")[1].split(b"\r\n")[0])

        asking = connect()
        before = field("client_bytes")
        stuck = [connect() for _ in range(20)]
        for client in stuck:
            client.sendall(b"PING\r\n")
            check("TLS: PING", client.recv(100), b"+PONG\r\n")
            # The header of a record, and most of what it announces.
            with socket.socket(fileno=os.dup(client.fileno())) as raw:
                raw.sendall(b"\x17\x03\x03\x41\x00" + bytes(16000))
        check("TLS: a connection counts with its record", field("client_bytes") - before >= 20 * (20 << 10), True)
        for client in stuck:
            client.settimeout(30)
            check("TLS: an unfinished record has a time limit", client.recv(100), b"")
        half = socket.create_connection(("localhost", server.port))
        half.sendall(b"\x16\x03\x01\x02\x00")
        time.sleep(0.2)
        started = time.monotonic()
        server.process.terminate()
        server.process.wait()
        check("TLS: half a handshake does not delay the end", time.monotonic() - started < 4, True)


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
    with tempfile.TemporaryDirectory() as directory:
        with Server(binary, directory, filters=True) as server:
            for protocol in (2, 3):
                filters(server, protocol)
            check("redis-cli: --scan", server.cli("--scan", "--pattern", "cop*"), "copy")
            check("redis-cli -n", server.cli("-n", "3", "BF.ADD", "f", "a"), "1")
    tls(binary)
    print(f"redis-py {redis.__version__} and {subprocess.run(['redis-cli', '--version'], capture_output=True, text=True).stdout.strip()}: all ok")


if __name__ == "__main__":
    main()
