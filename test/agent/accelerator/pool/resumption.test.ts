// Sessions of TLS: resumed by whichever worker a visitor meets, and behind a restart; never under keys that are too old or that nobody can vouch for.

import { once } from "node:events";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { describe, expect, test } from "vitest";
import {
  TicketKeyring,
  type KeptTicketKeys,
} from "../../../../src/agent/accelerator/doors/ticket-keys.ts";
import {
  readTicketKeys,
  writeTicketKeys,
} from "../../../../src/agent/accelerator/pool/ticket-key-file.ts";
import { until } from "../../../support/until.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { stateOf } from "../edge.ts";
import { start } from "../pool-rig.ts";
import { installed, shake, tableOf } from "../secure-clients.ts";

type Version = "TLSv1.2" | "TLSv1.3";
const visits = 20;
const certificate = installed();

async function stage(ticketFile: string) {
  const rig = await start({
    count: 3,
    tlsListen: { host: "127.0.0.1", port: 0 },
    ticketFile,
  });
  const certificates = tableOf(certificate);
  await rig.pool.publish((version) => ({ ...stateOf(version, {}), certificates }));
  return { ...rig, port: rig.pool.status().tlsPort ?? 0 };
}

async function visit(port: number, version: Version, session?: Buffer): Promise<TLSSocket> {
  const versions = { minVersion: version, maxVersion: version };
  return shake(port, { ALPNProtocols: ["http/1.1"], ...versions, ...(session && { session }) });
}

async function leave(socket: TLSSocket): Promise<void> {
  socket.resume().end();
  await once(socket, "close");
}

async function begin(port: number, version: Version): Promise<Buffer> {
  const socket = await visit(port, version);
  if (version === "TLSv1.3") await once(socket, "session");
  const session = socket.getSession();
  await leave(socket);
  if (session === undefined) throw new Error("no session");
  return session;
}

/** How many of the visits are resumed. */
async function resumed(port: number, version: Version, session: Buffer): Promise<number> {
  let count = 0;
  for (let no = 0; no < visits; no++) {
    const socket = await visit(port, version, session);
    if (socket.isSessionReused()) count++;
    await leave(socket);
  }
  return count;
}

test.each(["TLSv1.2", "TLSv1.3"] as const)(
  "of %s: every visit is resumed, in each worker and behind a restart",
  async (version) => {
    using dir = tempDir();
    const file = join(dir.path, "vault", "tickets.json");
    let session: Buffer;
    {
      await using before = await stage(file);
      session = await begin(before.port, version);
      expect(await resumed(before.port, version, session)).toBe(visits);
      const parts = await before.pool.metrics();
      const counts = parts.map((part) => handshakes(part, "resumed"));
      expect(counts.filter((count) => count > 0).length).toBeGreaterThan(1);
      expect(counts.reduce((sum, count) => sum + count)).toBe(visits);
    }
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(dir.path, "vault")).mode & 0o777).toBe(0o700);
    await using after = await stage(file);
    expect(await resumed(after.port, version, session)).toBe(visits);
  },
);

function handshakes(part: readonly unknown[], outcome: string): number {
  // As prom-client tells it.
  const metrics = part as readonly {
    readonly name: string;
    readonly values: readonly { readonly labels: object; readonly value: number }[];
  }[];
  const values = metrics.find(({ name }) => name === "accel_agent_tls_handshakes_total")?.values;
  return (values ?? [])
    .filter(({ labels }) => "outcome" in labels && labels.outcome === outcome)
    .reduce((sum, { value }) => sum + value, 0);
}

test("keys that cannot be written are used all the same", async () => {
  using dir = tempDir();
  writeFileSync(join(dir.path, "vault"), "a file in the place of the directory");
  await using rig = await stage(join(dir.path, "vault", "tickets.json"));
  const session = await begin(rig.port, "TLSv1.3");
  expect(await resumed(rig.port, "TLSv1.3", session)).toBe(visits);
});

describe("keys of before a restart", () => {
  const rotateMs = 3_600_000;
  const kept: KeptTicketKeys = {
    madeMs: 10_000_000,
    current: Buffer.alloc(48, 1),
    previous: Buffer.alloc(48, 2),
  };
  const open = (afterMs: number) => {
    const made: KeptTicketKeys[] = [];
    const nowMs = (): number => kept.madeMs + afterMs;
    using ring = new TicketKeyring({ kept, onMade: (keys) => made.push(keys), nowMs, rotateMs });
    return { ...ring.keys, made };
  };

  test("serve on while they are young", () => {
    expect(open(rotateMs - 1)).toEqual({ ...kept, made: [] });
  });

  test("only open what they have closed when it is time for others", () => {
    const { current, previous, made } = open(rotateMs);
    expect(previous).toEqual(kept.current);
    expect(current).not.toEqual(kept.current);
    expect(made).toEqual([{ madeMs: kept.madeMs + rotateMs, current, previous }]);
  });

  test.each([
    ["are too old", 2 * rotateMs],
    ["are from the future", -1],
  ])("are worth nothing when they %s", (_what, afterMs) => {
    const { current, previous } = open(afterMs);
    expect(previous).toBeUndefined();
    expect(current).not.toEqual(kept.current);
  });

  test("are read as they were written, and not at all when they are damaged", async () => {
    using dir = tempDir();
    const path = join(dir.path, "tickets.json");
    expect(await readTicketKeys(path)).toBeUndefined();
    await writeTicketKeys(path, kept);
    expect(await readTicketKeys(path)).toEqual(kept);
    const text = readFileSync(path, "utf8");
    for (const damaged of [text.slice(0, 40), text.replace("0101", "01"), "[]", "null", "{}"]) {
      writeFileSync(path, damaged);
      expect(await readTicketKeys(path)).toBeUndefined();
    }
    chmodSync(path, 0o644);
    await writeTicketKeys(path, { ...kept, previous: undefined });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await readTicketKeys(path)).toEqual({ ...kept, previous: undefined });
  });
});

test("keys are made anew in time", async () => {
  const made: KeptTicketKeys[] = [];
  using ring = new TicketKeyring({ onMade: (keys) => made.push(keys), rotateMs: 20 });
  await until("two pairs", () => made.length > 1);
  const [first, second] = made;
  expect(second?.previous).toEqual(first?.current);
  expect(second?.current).not.toEqual(first?.current);
  expect(ring.keys.current).toEqual(made.at(-1)?.current);
});
