// How long it takes from a fault of a host to its warning, to an alert that fires in a real Prometheus with the rules that are shipped, and to its end.
// alerts.bench.ts makes the faults of origins and of central.
//
// The agent has a small disk and few descriptors in a mount namespace of its own, which ends with it. Needs root, unshare(1), prlimit(1), and 17,000
// descriptors. Warnings of refused connections and of lost records stay for ten minutes and for an hour, so that whoever is called sees them.
//
//   npm run bench -- alerts-host [--patience MINUTES]     how long an end is waited for; the rest is said to last longer

import { Agent, request as httpRequest } from "node:http";
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { domain } from "../test/support/customer-script.ts";
import { browser } from "../test/support/edge.ts";
import { Figures } from "./support/figures.ts";
import { comesAbout, WatchedEdge } from "./support/watched-edge.ts";

/** A worker has 16,384 connections at most: more than four fifths of these. */
const descriptors = 19_000;
const heldConnections = 16_800;
const mib = 2 ** 20;
const diskBytes = 512 * mib;
/** Below a quarter of what counts as little, which makes an error of the warning. */
const leftBytes = 10 * mib;
const spoolMax = "4MiB";

type Fault = {
  readonly name: string;
  readonly code: string;
  /** None: the warning is for whoever looks, and calls nobody. */
  readonly alert?: string;
  readonly breakIt: () => Promise<void>;
  readonly mend: () => Promise<void>;
};

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { patience: { type: "string", default: "70" } },
  });
  const patienceMs = Number(values.patience) * 60_000;
  const figures = new Figures(say);
  await using watched = await WatchedEdge.open({
    settings: ({ ports }) => ({
      spool: { max: spoolMax },
      // Trusted: nobody counts how many connections this address has.
      accelerator: {
        listen: `127.0.0.1:${ports.visitors}`,
        workers: 1,
        trusted_proxies: ["127.0.0.1"],
      },
    }),
    prefix: ({ dir }) => [
      "unshare",
      "--mount",
      "prlimit",
      `--nofile=${descriptors}:${descriptors}`,
      "sh",
      "-c",
      `mount -t tmpfs -o size=${diskBytes},mode=0700 tmpfs ${join(dir, "agent")} && exec "$@"`,
      "sh",
    ],
  });
  const { edge } = watched;
  using held = new HeldConnections(edge.ports.visitors);
  const released = Promise.withResolvers<void>();
  const rotated: Fault = {
    name: "the secret16 was rotated",
    code: "secret_file_outdated",
    breakIt: async () => {
      const { status } = await edge.api.post(
        `/deployment-site/${watched.siteId}/rotate-secret/`,
        {},
      );
      if (status !== 200 && status !== 201) throw new Error(`rotate-secret: ${status}`);
      await edge.central.kill(); // A sign-in is due when the token ends; a lost connection makes it sooner.
      await edge.central.restart();
    },
    mend: async () => undefined,
  };
  const full: Fault = {
    name: "the disk is nearly full",
    code: "disk_low",
    alert: "AccelAgentError",
    breakIt: async () => fill(edge.agent.pid, join(edge.dir, "agent")),
    mend: async () => rmSync(fillPath(edge.agent.pid, join(edge.dir, "agent"))),
  };
  const descriptorsLow: Fault = {
    name: "descriptors run out",
    code: "descriptors_low",
    alert: "AccelDescriptorsLow",
    breakIt: async () => held.hold(heldConnections),
    mend: async () => {
      held.release();
      released.resolve();
    },
  };
  const refused: Fault = {
    name: "connections are refused",
    code: "connections_refused",
    alert: "AccelConnectionsRefused",
    breakIt: descriptorsLow.breakIt,
    mend: () => released.promise, // By the same connections.
  };
  const lost: Fault = {
    name: "records are lost: central is gone and the spool is full",
    code: "records_dropped",
    alert: "AccelRecordsLost",
    breakIt: async () => {
      await edge.central.kill();
      await flood(edge.ports.visitors, 20_000);
    },
    mend: async () => edge.central.restart(),
  };

  const ends: Promise<void>[] = [];
  const make = async (fault: Fault): Promise<void> => {
    const { name, code, alert } = fault;
    const began = performance.now();
    await fault.breakIt();
    const tell = (what: string, isSo: boolean, sinceMs: number): void => {
      if (!isSo) say(`${name}: ${what}: not within ${values.patience} min`);
      else figures.add(`${name}: ${what}`, (performance.now() - sinceMs) / 1_000, "s");
    };
    const isWarned = async (): Promise<boolean> => (await watched.codes()).includes(code);
    const fires = async (): Promise<boolean> =>
      alert !== undefined &&
      (await watched.alerts("firing", alert === "AccelAgentError" ? code : undefined)).includes(
        alert,
      );
    const warned = await comesAbout(isWarned, patienceMs);
    tell("warned after", warned, began);
    if (alert !== undefined) tell(`${alert} after`, await comesAbout(fires, patienceMs), began);
    await fault.mend();
    const mended = performance.now();
    if (fault === rotated) return; // Whoever writes the file restarts the agent.
    const isOver = async (): Promise<void> => {
      tell(
        "mended: warning ends",
        await comesAbout(async () => !(await isWarned()), patienceMs),
        mended,
      );
    };
    const isResolved = async (): Promise<void> => {
      tell(
        "mended: alert ends",
        await comesAbout(async () => !(await fires()), patienceMs),
        mended,
      );
    };
    ends.push(isOver(), ...(alert === undefined ? [] : [isResolved()]));
  };
  await make(rotated);
  await Promise.all([make(full), make(descriptorsLow), make(refused)]);
  await make(lost);
  await Promise.all(ends);
}

/** The agent's own view of its disk: nobody else has it mounted. */
const fillPath = (pid: number, stateDir: string): string =>
  join(`/proc/${pid}/root`, stateDir, "fill");

function fill(pid: number, stateDir: string): void {
  const path = fillPath(pid, stateDir);
  const { bavail, bsize } = statfsSync(dirname(path));
  writeFileSync(path, Buffer.alloc(bavail * bsize - leftBytes));
}

/** Connections that say nothing; those that the agent closes are opened anew. */
class HeldConnections implements Disposable {
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #wanted = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  async hold(count: number): Promise<void> {
    if (this.#wanted === count) return;
    this.#wanted = count;
    this.#timer = setInterval(() => this.#open(), 100);
    await sleep(0);
  }

  release(): void {
    clearInterval(this.#timer);
    this.#wanted = 0;
    for (const socket of this.#sockets) socket.destroy();
  }

  #open(): void {
    const missing = Math.min(500, this.#wanted - this.#sockets.size);
    for (let no = 0; no < missing; no++) {
      const socket = connect(this.#port, "127.0.0.1");
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("close", () => this.#sockets.delete(socket));
    }
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** Requests whose records are long. */
async function flood(port: number, count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const query = "x".repeat(1_500);
  let next = 0;
  const visitor = async (): Promise<void> => {
    while (next++ < count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const headers = { host: domain, "user-agent": browser };
      const path = `/private?n=${next}&${query}`;
      const asked = httpRequest({ host: "127.0.0.1", port, path, agent, headers }, (answer) => {
        answer.resume().once("close", resolve);
      });
      asked.on("error", () => resolve());
      asked.end();
      await promise;
    }
  };
  await Promise.all(Array.from({ length: 16 }, visitor));
  agent.destroy();
}
