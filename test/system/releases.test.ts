// Versions on a real host under a real central: an operator pins one and lifts it, a version that breaks on trial is rolled back by itself, and central
// tells of both what the host proved.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mainFile, node } from "../support/process.ts";
import { domain, ReleaseRig } from "../support/release-rig.ts";
import { until } from "../support/until.ts";

type Facts = Readonly<Record<string, unknown>>;

/** Long enough for an activation and a look at it, on a loaded machine too. */
const trialS = 60;
const withinMs = 150_000;

let rig: ReleaseRig;
const ids = new Map<string, number>();
beforeAll(async () => {
  rig = await ReleaseRig.open({ settings: { viewset: { keep: 3, trial: `${trialS}s` } } });
  for (const name of ["one", "two", "three"])
    ids.set(
      name,
      await rig.publish(name, [
        ["index.html", `the index of ${name}`],
        ["same.txt", "the same in all of them"],
      ]),
    );
  await rig.edge.startAgent();
}, 600_000);
afterAll(async () => rig[Symbol.asyncDispose]());

const idOf = (name: string): number => ids.get(name) ?? 0;

async function viewset(...args: readonly string[]): Promise<Facts> {
  const config = ["--config", join(rig.edge.dir, "agent.yaml")];
  const command = [mainFile, "agent", "viewset", ...args, "--json", ...config];
  const { stdout } = await promisify(execFile)(node, command);
  const facts = JSON.parse(stdout);
  return Array.isArray(facts) ? facts[0] : facts;
}

async function served(): Promise<string> {
  const { status, body } = await rig.edge.visit("/", { host: domain });
  return `${status} ${body.toString()}`;
}

async function stateIs(name: string, state: string): Promise<Facts> {
  return until(
    `${name} is ${state}`,
    async () => {
      const told = await rig.stateOf(idOf(name));
      return told["state"] === state && told;
    },
    withinMs,
  );
}

async function activation(name: string): Promise<unknown> {
  const { body } = await rig.edge.api.get(`/active-viewset/${domain}/${idOf(name)}/`);
  return Object(body)["activation"];
}

test("an operator pins a version: central tells it, a restart and the same wish change nothing, another wish does", async () => {
  const { edge } = rig;
  for (const name of ["one", "two"]) {
    await rig.activate(idOf(name));
    await stateIs(name, "applied");
  }
  expect(await served()).toBe("200 the index of two");
  expect(await viewset("list")).toMatchObject({
    in_force: { viewset_name: "two" },
    standing: "in force",
    on_trial_until: expect.any(String),
    kept: [{ viewset_name: "two" }, { viewset_name: "one", outcome: "replaced" }],
  });

  expect(await viewset("rollback", domain)).toMatchObject({
    in_force: { viewset_name: "one" },
    pinned: { viewset_name: "one" },
    wanted: { viewset_name: "two" },
    standing: "pinned",
    on_trial_until: null,
  });
  expect(await served()).toBe("200 the index of one");
  expect(await stateIs("two", "pinned")).toMatchObject({
    error: 'an operator pinned this host to "one"',
    serving: { viewset_id: idOf("one"), viewset_name: "one" },
  });
  expect(await activation("two")).toBe("pinned");

  await edge.agent.kill();
  await edge.startAgent();
  expect(await served()).toBe("200 the index of one");
  await rig.activate(idOf("two"));
  await stateIs("two", "pinned");
  expect(await served()).toBe("200 the index of one");

  await rig.activate(idOf("three"));
  await stateIs("three", "applied");
  expect(await served()).toBe("200 the index of three");
  expect(await viewset("list", domain)).toMatchObject({ pinned: null, standing: "in force" });
}, 600_000);

test("a version whose files go bad on trial makes room for the one before; tried again it is fetched and serves", async () => {
  const { edge } = rig;
  await rig.activate(idOf("two"));
  await stateIs("two", "applied");
  expect(await viewset("list")).toMatchObject({ in_force: { viewset_name: "two" } });
  const sha256 = createHash("sha256").update("the index of two").digest("hex");
  rmSync(join(edge.dir, "agent/blobs", sha256.slice(0, 2), sha256));

  const told = await stateIs("two", "failed");
  expect(told).toMatchObject({
    error: expect.stringContaining(`${domain} /`),
    serving: { viewset_id: idOf("three"), viewset_name: "three" },
  });
  expect(await served()).toBe("200 the index of three");
  expect(await activation("two")).toBe("failed");
  const facts = await viewset("list");
  expect(facts).toMatchObject({
    in_force: { viewset_name: "three" },
    standing: "quarantined",
    quarantined: [{ viewset_name: "two", code: "VIEWSET_PROBE_FAILED" }],
  });
  const status = await fetch(`http://127.0.0.1:${edge.ports.metrics}/`);
  expect(await status.text()).toContain("viewset_quarantined");

  // Central wants it once more: it is told at once what it was.
  await rig.activate(idOf("two"));
  expect(await stateIs("two", "failed")).toMatchObject({
    error: expect.stringContaining("it failed on this host at"),
  });

  expect(await viewset("retry", domain)).toMatchObject({
    in_force: { viewset_name: "two" },
    quarantined: [],
    standing: "in force",
  });
  expect(await served()).toBe("200 the index of two");
  await stateIs("two", "applied");
  const metrics = await (
    await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)
  ).text();
  expect(metrics).toContain('accel_agent_viewset_rollbacks_total{by="trial"} 1');
  expect(metrics).toContain('accel_agent_viewset_standing{standing="in_force"} 1');
}, 600_000);
