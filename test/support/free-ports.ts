// Ports that were free a moment ago: for programs that must know each other's before they start.
//
// The kernel gives the ports of one range to connections and to whoever listens on any: one of those, once given back, may be somebody else's before it is
// used. Below that range only programs that name a port have one. So that no two tests name the same, each port that was given away has a file with the
// process that has it, as long as that lives.

import { randomInt } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";

/** What services of the host have lies below, mostly. */
const lowest = 10_000;
const triesMax = 100;

export async function freePorts(count: number): Promise<readonly number[]> {
  const ports = new Set<number>();
  for (let tries = 0; ports.size < count; tries++) {
    if (tries === triesMax) throw new Error(`no ${count} free ports`);
    const [port = 0] = await listenedOn([wanted()]).catch(() => []);
    if (port > 0 && isClaimed(port)) ports.add(port);
  }
  return [...ports];
}

const claims = join(tmpdir(), `accel-test-ports-${userInfo().uid}`);
const mine = new Set<string>();

/** For this process. False: it is another's, or was given away here before. */
function isClaimed(port: number): boolean {
  if (mine.size === 0) prepareClaims();
  const file = join(claims, String(port));
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
  mine.add(file);
  return true;
}

/** Without those of processes that were killed. */
function prepareClaims(): void {
  mkdirSync(claims, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(claims)) {
    const file = join(claims, name);
    if (!isAlive(Number(readIfThere(file)))) rmSync(file, { force: true });
  }
  process.once("exit", () => {
    for (const file of mine) rmSync(file, { force: true });
  });
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // Given back meanwhile.
  }
}

/** An empty file is being written: 0 is this process's own group. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** 0: any, where the kernel gives almost all there are. */
function wanted(): number {
  const [first] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split("\t");
  return Number(first) > 2 * lowest ? randomInt(lowest, Number(first)) : 0;
}

/** Whether all of them can be listened on. */
export async function areFree(ports: readonly number[]): Promise<boolean> {
  return listenedOn(ports).then(
    () => true,
    () => false,
  );
}

/** At once, for a moment; rejects when one of them is another's. */
async function listenedOn(ports: readonly number[]): Promise<readonly number[]> {
  const servers = await Promise.all(ports.map(listening));
  const got = servers.map((server) => (server.address() as AddressInfo).port); // Listening on TCP.
  await Promise.all(servers.map(closed));
  return got;
}

async function listening(port: number): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  const server = createServer();
  server.once("error", reject).listen(port, "127.0.0.1", () => resolve(server));
  return promise;
}

async function closed(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  await promise;
}
