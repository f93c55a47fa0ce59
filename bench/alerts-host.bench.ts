// How long it takes from a fault of a host to its warning, to an alert that fires in a real Prometheus with the rules that are shipped, and to its end.
// alerts.bench.ts makes the faults of origins and of central, alerts-rest.bench.ts those that the other alerts are for.
//
// The agent has a small disk and few descriptors in a mount namespace of its own, which ends with it. Needs root, unshare(1), prlimit(1), and 17,000
// descriptors. Warnings of refused connections and of lost records stay for ten minutes and for an hour, so that whoever is called sees them.
//
//   npm run bench -- alerts-host [--patience MINUTES]     how long an end is waited for that comes late by design

import { Agent, request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { domain } from "../test/support/customer-script.ts";
import { browser } from "../test/support/edge.ts";
import { Figures } from "./support/figures.ts";
import { fillOwnDisk, makeRoomOnOwnDisk, withOwnDisk } from "./support/own-disk.ts";
import { TimedFaults, type Fault } from "./support/timed-faults.ts";
import { WatchedEdge } from "./support/watched-edge.ts";

/** A worker has 16,384 connections at most: more than four fifths of these. */
const descriptors = 19_000;
const heldConnections = 16_800;
const mib = 2 ** 20;
const diskBytes = 512 * mib;
/** Below a quarter of what counts as little, which makes an error of the warning. */
const leftBytes = 10 * mib;
const spoolMax = "4MiB";

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
      "prlimit",
      `--nofile=${descriptors}:${descriptors}`,
      ...withOwnDisk(join(dir, "agent"), diskBytes),
    ],
  });
  const faults = new TimedFaults({ watched, figures, say, patienceMs });
  const { edge } = watched;
  const stateDir = join(edge.dir, "agent");
  using held = new HeldConnections(edge.ports.visitors);
  const released = Promise.withResolvers<void>();
  const rotated: Fault = {
    name: "the secret16 was rotated",
    warning: { code: "secret_file_outdated" },
    alerts: [],
    breakIt: async () => {
      const { status } = await edge.api.post(
        `/deployment-site/${watched.siteId}/rotate-secret/`,
        {},
      );
      if (status !== 200 && status !== 201) throw new Error(`rotate-secret: ${status}`);
      await edge.central.kill(); // A sign-in is due when the token ends; a lost connection makes it sooner.
      await edge.central.restart();
    },
    // Whoever writes the file restarts the agent.
  };
  const full: Fault = {
    name: "the disk is nearly full",
    warning: { code: "disk_low" },
    alerts: [{ name: "AccelAgentError", code: "disk_low", firesWithinMin: 5 }],
    breakIt: async () => fillOwnDisk(edge.agent.pid, stateDir, leftBytes),
    mend: async () => makeRoomOnOwnDisk(edge.agent.pid, stateDir),
  };
  const descriptorsLow: Fault = {
    name: "descriptors run out",
    warning: { code: "descriptors_low" },
    alerts: [{ name: "AccelDescriptorsLow", firesWithinMin: 8 }],
    breakIt: async () => held.hold(heldConnections),
    mend: async () => {
      held.release();
      released.resolve();
    },
  };
  const refused: Fault = {
    name: "connections are refused",
    warning: { code: "connections_refused", stays: "ten minutes after the last one" },
    alerts: [
      {
        name: "AccelConnectionsRefused",
        firesWithinMin: 5,
        stays: "five minutes after the last one",
      },
    ],
    breakIt: descriptorsLow.breakIt,
    mend: () => released.promise, // By the same connections.
  };
  const lost: Fault = {
    name: "records are lost: central is gone and the spool is full",
    warning: { code: "records_dropped", stays: "an hour after the last one" },
    alerts: [
      { name: "AccelRecordsLost", firesWithinMin: 5, stays: "15 minutes after the last one" },
    ],
    breakIt: async () => {
      await edge.central.kill();
      await flood(edge.ports.visitors, 20_000);
    },
    mend: async () => edge.central.restart(),
  };

  await faults.make(rotated);
  await Promise.all([full, descriptorsLow, refused].map(async (fault) => faults.make(fault)));
  await faults.make(lost);
  await faults.ended();
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join(", ")}`);
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
