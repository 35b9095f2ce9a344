// `sidebloom serve` asked by the clients that people use in JavaScript: node-redis and ioredis.
//
// usage: NODE_PATH=DIR/node_modules node tests/redis_clients.mjs SIDEBLOOM
//
// Needs the packages redis and ioredis (npm install --prefix DIR redis ioredis). Ends with code 1 at the first difference.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(join(process.env.NODE_PATH ?? ".", "x.js"));
const { createClient } = require("redis");
const Redis = require("ioredis");

const binary = process.argv[2];
if (!binary) throw new Error("usage: redis_clients.mjs SIDEBLOOM");

async function check(what, found, wanted) {
  assert.deepEqual(await found, wanted, what);
  console.log(`${what}: ok`);
}

async function nodeRedis(port, RESP) {
  const name = `node-redis, RESP${RESP}`;
  const client = createClient({ url: `redis://127.0.0.1:${port}`, RESP });
  await client.connect();
  const filter = `bloom ${RESP}`;
  await check(`${name}: bf.reserve`, client.bf.reserve(filter, 0.01, 1000), "OK");
  await check(`${name}: bf.add`, client.bf.add(filter, "a"), true);
  await check(`${name}: bf.add again`, client.bf.add(filter, "a"), false);
  await check(`${name}: bf.mAdd`, client.bf.mAdd(filter, ["a", "b"]), [false, true]);
  await check(`${name}: bf.mExists`, client.bf.mExists(filter, ["a", "x"]), [true, false]);
  await check(`${name}: bf.card`, client.bf.card(filter), 2);
  const bloom = Object.fromEntries(Object.entries(await client.bf.info(filter)));
  await check(`${name}: bf.info`, Object.values(bloom).includes(1000), true);
  const cuckoo = `cuckoo ${RESP}`;
  await check(`${name}: cf.reserve`, client.cf.reserve(cuckoo, 1000), "OK");
  await check(`${name}: cf.add`, client.cf.add(cuckoo, "a"), true);
  await check(`${name}: cf.addNX`, client.cf.addNX(cuckoo, "a"), false);
  await check(`${name}: cf.count`, client.cf.count(cuckoo, "a"), 1);
  await check(`${name}: cf.insert`, client.cf.insert(cuckoo, ["a", "b"]), [true, true]);
  await check(`${name}: cf.del`, client.cf.del(cuckoo, "b"), true);
  await check(`${name}: multi`, client.multi().bf.add(filter, "m").bf.exists(filter, "m").exec(), [true, true]);
  const names = [];
  for await (const found of client.scanIterator()) names.push(...[found].flat());
  await check(`${name}: scan`, names.includes(filter) && names.includes(cuckoo), true);
  await check(`${name}: expire and ttl`, client.expire(filter, 100).then(() => client.ttl(filter)), 100);
  await check(`${name}: del`, client.del([filter, cuckoo]), 2);
  await client.close();
}

async function ioRedis(port) {
  const client = new Redis({ port });
  await check("ioredis: BF.ADD", client.call("BF.ADD", "io", "a"), 1);
  await check("ioredis: BF.MEXISTS", client.call("BF.MEXISTS", "io", "a", "x"), [1, 0]);
  await check("ioredis: a pipeline", client.pipeline().call("CF.ADD", "io c", "a").call("CF.COUNT", "io c", "a").exec(), [[null, 1], [null, 1]]);
  await client.watch("io");
  await client.call("BF.ADD", "io", "b");
  await check("ioredis: a transaction whose filter has changed", client.multi().call("BF.ADD", "io", "c").exec(), null);
  await check("ioredis: a transaction", client.multi().call("BF.ADD", "io", "c").exec(), [[null, 1]]);
  await check("ioredis: type", client.type("io c"), "MBbloomCF");
  await check("ioredis: flushall", client.flushall(), "OK");
  await check("ioredis: dbsize", client.dbsize(), 0);
  client.disconnect();
}

const directory = mkdtempSync(join(tmpdir(), "sidebloom-"));
const server = spawn(binary, ["serve", join(directory, "filters"), "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
try {
  const [line] = await new Promise((resolve) => createInterface(server.stdout).once("line", (...args) => resolve(args)));
  const port = Number(line.match(/^listening on 127\.0\.0\.1:(\d+)$/)[1]);
  await nodeRedis(port, 2);
  await nodeRedis(port, 3);
  await ioRedis(port);
} finally {
  server.kill();
  await new Promise((resolve) => server.once("exit", resolve));
  rmSync(directory, { recursive: true });
}
