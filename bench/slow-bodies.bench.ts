// Visitors who send the bodies of requests slowly, or many at once, beside nginx in one run: how many of the origin's connections they hold, what others wait, and
// the memory that it takes. `--seconds N`: how long the slow ones send; 8 unless told.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { makeAuthority } from "../test/support/x509.ts";
import { host, tlsOriginHost } from "./serving/cases.ts";
import { residentMiB } from "./serving/cpu.ts";
import { startOrigin } from "./serving/origin.ts";
import { startNginx, startOurs, type Server } from "./serving/servers.ts";

const slowVisitors = 300;
const promisedBytes = 100_000;
const byteEveryMs = 3_000;
const calmMs = 3_000;
const largeBodies = 1_000;
const largeBytes = 900 * 1024;
const lookMs = 50;
/** What 1,000 bodies may take. */
const largeWithinMs = 60_000;

type Counted = AsyncDisposable & {
  readonly port: number;
  readonly connections: () => Promise<number>;
};

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { seconds: { type: "string", default: "8" } },
  });
  const dir = mkdtempSync(join(tmpdir(), "slow-bodies-"));
  try {
    await using stack = new AsyncDisposableStack();
    const authority = makeAuthority();
    const certificate = authority.issue({ names: [host, tlsOriginHost, "localhost"] });
    const rootFile = join(dir, "root.pem");
    writeFileSync(rootFile, authority.root.pem);
    const tlsOrigin = await startOrigin({ key: certificate.key, cert: certificate.chain });
    stack.use(tlsOrigin);
    const origin = stack.use(await startCounted());
    const ports = { plain: origin.port, tls: tlsOrigin.tls };
    const scene = { origin: ports, certificate, rootFile, badRanges: [] };
    const servers: Server[] = [stack.use(await startOurs(scene))];
    const nginx = await startNginx(scene);
    if ("missing" in nginx) say(`nginx: ${nginx.missing}`);
    else servers.push(stack.use(nginx));
    for (const server of servers) {
      await attack(server, origin, Number(values.seconds) * 1_000, say);
      await load(server, say);
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** An origin in this process, which knows how many connections it has. */
async function startCounted(): Promise<Counted> {
  const page = randomBytes(4_096);
  const server = createServer((request, response) => {
    request.resume().once("end", () => {
      response.writeHead(200, {
        "content-length": page.length,
        "cache-control": "private, no-store",
      });
      response.end(page);
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return {
    port: (server.address() as AddressInfo).port, // A TCP server that listens has one.
    connections: async () => {
      const counted = Promise.withResolvers<number>();
      server.getConnections((_error, count) => counted.resolve(count));
      return counted.promise;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function attack(
  server: Server,
  origin: Counted,
  attackMs: number,
  say: (line: string) => void,
): Promise<void> {
  const calm = await visitFor(server, calmMs);
  const slow = Array.from({ length: slowVisitors }, () => {
    const socket = connect(server.http, "127.0.0.1").on("error", () => {});
    socket.resume();
    socket.write(
      `POST /post HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${promisedBytes}\r\n\r\nx`,
    );
    return socket;
  });
  const sending = setInterval(() => {
    for (const socket of slow) if (socket.writable) socket.write("x");
  }, byteEveryMs);
  let held = 0;
  const looking = setInterval(() => {
    void origin.connections().then((count) => (held = Math.max(held, count)));
  }, lookMs);
  const attacked = await visitFor(server, attackMs);
  clearInterval(sending);
  clearInterval(looking);
  for (const socket of slow) socket.destroy();
  say(
    `${server.name.padEnd(14)} ${slowVisitors} slow bodies hold ${held} connections of the origin; others wait p50 ${ms(attacked, 0.5)}, p99 ${ms(attacked, 0.99)} (before: ${ms(calm, 0.5)}, ${ms(calm, 0.99)})`,
  );
}

/** One visitor who asks and posts in turn; the milliseconds that each request took. */
async function visitFor(server: Server, forMs: number): Promise<number[]> {
  const took: number[] = [];
  const untilMs = performance.now() + forMs;
  for (let no = 0; performance.now() < untilMs; no++) {
    const beganMs = performance.now();
    const body = no % 2 === 0 ? undefined : Buffer.alloc(1_024);
    await ask(server, body === undefined ? "/private/a" : "/post", body);
    took.push(performance.now() - beganMs);
    await pause(5);
  }
  return took.sort((a, b) => a - b);
}

async function load(server: Server, say: (line: string) => void): Promise<void> {
  const body = randomBytes(largeBytes);
  const beforeMiB = residentMiB(server.pid);
  let mostMiB = beforeMiB;
  const looking = setInterval(() => (mostMiB = Math.max(mostMiB, residentMiB(server.pid))), lookMs);
  const beganMs = performance.now();
  const asked = Array.from({ length: largeBodies }, async () => ask(server, "/post", body));
  const answers = await Promise.allSettled(asked);
  clearInterval(looking);
  const taken = answers.filter((one) => one.status === "fulfilled").length;
  const failed = Map.groupBy(
    answers.filter((one) => one.status === "rejected"),
    ({ reason }) => String(reason),
  );
  for (const [reason, of] of failed)
    say(`${server.name.padEnd(14)} ${of.length} not taken: ${reason}`);
  const seconds = ((performance.now() - beganMs) / 1_000).toFixed(1);
  say(
    `${server.name.padEnd(14)} ${largeBodies} bodies of 900 KiB at once: ${taken} taken in ${seconds} s; resident ${beforeMiB.toFixed(0)} MiB before, ${mostMiB.toFixed(0)} MiB at most`,
  );
}

async function ask(server: Server, path: string, body: Buffer | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const method = body === undefined ? "GET" : "POST";
  const headers = { host, ...(body !== undefined && { "content-length": body.length }) };
  const where = { host: "127.0.0.1", port: server.http, path, method, headers, agent: false };
  const request = httpRequest(where, (response) => {
    response.resume().once("end", () => {
      if (response.statusCode === 200) resolve();
      else reject(new Error(`${response.statusCode}`));
    });
    response.once("error", reject);
  });
  request.once("error", reject);
  request.setTimeout(largeWithinMs, () => request.destroy(new Error("too slow")));
  request.end(body);
  await promise;
}

function ms(sorted: readonly number[], part: number): string {
  return `${(sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(1)} ms`;
}
