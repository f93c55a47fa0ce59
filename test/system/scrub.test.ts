// A scrub on a real host: files larger than any probe reads, of the version in force and of a kept one, have other bytes on the disk. They are found and
// fetched again before a visitor meets them.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callControl } from "../../src/base/control-socket.ts";
import { blobPath } from "../../src/core/blob-path.ts";
import { parseSha256 } from "../../src/core/ids.ts";
import { domain, ReleaseRig } from "../support/release-rig.ts";
import { until } from "../support/until.ts";

const withinMs = 150_000;
const large = (name: string): string => `${name} `.repeat(40_000);

let rig: ReleaseRig;
beforeAll(async () => {
  rig = await ReleaseRig.open();
  rig.edge.changeAgentSettings({ scrub: { schedule: "off", read_rate: "1GiB" } });
  await rig.edge.startAgent();
  for (const name of ["one", "two"]) {
    const id = await rig.publish(name, [
      ["index.html", name],
      ["large.html", large(name)],
    ]);
    await rig.activate(id);
    await rig.applied(id, withinMs);
  }
}, 600_000);
afterAll(async () => rig[Symbol.asyncDispose]());

function blobOf(content: string): string {
  const sha256 = parseSha256(createHash("sha256").update(content).digest("hex"));
  if (sha256 === undefined) throw new Error("no digest");
  return blobPath(join(rig.edge.dir, "agent/blobs"), sha256);
}

async function control(command: string): Promise<unknown> {
  const socket = join(rig.edge.dir, "agent/control.sock");
  const [answer] = await Array.fromAsync(
    callControl(socket, command, {}, AbortSignal.timeout(60_000)),
  );
  return answer;
}

type Status = {
  readonly parts: { readonly scrub: { readonly state: string; readonly last: unknown } };
  readonly warnings: readonly { readonly code: string }[];
};

async function scrubbed(): Promise<Status> {
  await control("viewset-check");
  return until(
    "the scrub is over",
    async () => {
      const status = (await control("status")) as Status;
      return status.parts.scrub.state === "off" && status;
    },
    withinMs,
  );
}

test("damage in large files is found and repaired, in the version in force and in a kept one", async () => {
  const { edge } = rig;
  const files = ["one", "two"].map((name) => [blobOf(large(name)), large(name)] as const);
  for (const [blob, content] of files) writeFileSync(blob, `${content.slice(0, -2)}! `);
  const status = await scrubbed();
  expect(status.parts.scrub.last).toMatchObject({
    checked: { index: 1, blobs: expect.any(Number) },
    damaged: { index: 0, bodies: 0, blobs: 2 },
    unchecked: {},
  });
  expect(status.warnings.map(({ code }) => code)).toContain("scrub_damage");
  await until(
    "both are right again",
    () => files.every(([blob, content]) => isFile(blob, content)),
    withinMs,
  );
  const { body } = await edge.visit("/large.html", { host: domain });
  expect(body.toString()).toBe(large("two"));
  const metrics = await (
    await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)
  ).text();
  expect(metrics).toContain('accel_agent_scrub_damaged_total{what="blobs"} 2');
  const next = await scrubbed();
  expect(next.parts.scrub.last).toMatchObject({ damaged: { index: 0, bodies: 0, blobs: 0 } });
  expect(next.warnings.map(({ code }) => code)).not.toContain("scrub_damage");
}, 300_000);

function isFile(path: string, content: string): boolean {
  try {
    return readFileSync(path, "utf8") === content;
  } catch {
    return false; // Being fetched again.
  }
}
