// Files of versions that a host's disk lost or changed: what is served of such a version without central and with it, and what is told.

import { createHash } from "node:crypto";
import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { blobPath } from "../../src/core/blob-path.ts";
import { parseSha256 } from "../../src/core/ids.ts";
import { OfflineHost } from "../support/offline-host.ts";
import { domain, ReleaseRig } from "../support/release-rig.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const withinMs = 150_000;
/** Enough that the probes of an activation would hardly meet one by chance. */
const others = Array.from({ length: 99 }, (_, no) => [`f${no}.html`, `file ${no}`] as const);

let rig: ReleaseRig;
const ids: number[] = [];
beforeAll(async () => {
  rig = await ReleaseRig.open();
  await rig.edge.startAgent();
  for (const name of ["one", "two"]) {
    const id = await rig.publish(name, [["index.html", `index of ${name}`], ...others]);
    await rig.activate(id);
    await rig.applied(id, withinMs);
    ids.push(id);
  }
}, 600_000);
afterAll(async () => rig[Symbol.asyncDispose]());

function blobOf(content: string): string {
  const sha256 = parseSha256(createHash("sha256").update(content).digest("hex"));
  if (sha256 === undefined) throw new Error("no digest");
  return blobPath(join(rig.edge.dir, "agent/blobs"), sha256);
}

async function served(path: string): Promise<string> {
  const { status, body } = await rig.edge.visit(path, { host: domain });
  return `${status} ${body.toString()}`;
}

test("a kept version whose index has other bytes of the same length is whole before it is applied", async () => {
  const blob = blobOf("index of one");
  chmodSync(blob, 0o600);
  writeFileSync(blob, "INDEX 0F 0NE");
  const [one = 0] = ids;
  await rig.activate(one);
  await rig.applied(one, withinMs);
  expect(await served("/")).toBe("200 index of one");
  expect(readFileSync(blob, "utf8")).toBe("index of one");
}, 300_000);

test("one of a hundred files is lost: without central the others are served, with it that one too", async () => {
  const { edge } = rig;
  await edge.agent.kill();
  rmSync(blobOf("file 7"));
  using temp = tempDir();
  const [state, moved] = [join(edge.dir, "agent"), join(temp.path, "agent")];
  renameSync(state, moved);
  const settings = readFileSync(join(edge.dir, "agent.yaml"), "utf8");
  {
    await using host = await OfflineHost.start(temp.path, settings, { path: "/" });
    for (const no of [6, 8]) {
      const { status, body } = await host.visit(`/f${no}.html`);
      expect(`${status} ${body.toString()}`).toBe(`200 file ${no}`);
    }
    expect((await host.visit("/f7.html")).status).toBeGreaterThanOrEqual(500);
    const own = parse(readFileSync(join(temp.path, "agent.yaml"), "utf8"));
    const ready = await fetch(`http://${own.metrics.listen}/readyz`);
    expect(await ready.text()).toMatch(/viewset_damaged: .*www\.example\.com/);
  }
  renameSync(moved, state);
  await edge.startAgent();
  expect(await served("/f8.html")).toBe("200 file 8");
  await until("it is whole", async () => (await served("/f7.html")) === "200 file 7", withinMs);
}, 300_000);
