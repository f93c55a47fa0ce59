// The agent's conversation about releases, with the installer's files on a disk: an order that is not wanted any more is removed before the agent says so.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { HostInstaller } from "../../../src/agent/rollout/host-installer.ts";
import { ReleaseAsking } from "../../../src/agent/rollout/release-asking.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { ReleaseTold, ReleaseWanted } from "../../../src/wire/rollout.ts";
import { tempDir } from "../../support/temp-dir.ts";

const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());

const go = { id: "t-go", version: "2.0.0" };
const back = { id: "t-back", version: "1.0.0" };

/** What is seen at the moment that the agent tells something. */
type Seen = { readonly told: ReleaseTold["order"]; readonly lies: string | undefined };

function host() {
  const home = mkdtempSync(join(dir.path, "host-"));
  const at = (name: string): string => join(home, name);
  symlinkSync("/lib/systemd/system/accel-agent-rollout.path", at("enabled"));
  const order = at("rollout/order");
  const lies = (): string | undefined =>
    existsSync(order) && statSync(order).isFile() ? readFileSync(order, "utf8") : undefined;
  const installer = new HostInstaller({
    order,
    outcome: at("outcome"),
    enabled: at("enabled"),
    packages: at("status"),
  });
  return { at, installer, lies };
}

/** Answers one telling after the other with these, and returns what was seen at each, and at one more. */
async function converse(
  { installer, lies }: Pick<ReturnType<typeof host>, "installer" | "lies">,
  answers: readonly (() => ReleaseWanted["order"])[],
): Promise<readonly Seen[]> {
  const seen: Seen[] = [];
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
  await using _ = new ReleaseAsking({
    instanceId: "a".repeat(32),
    bootId: "b1",
    version: "1.0.0",
    facts: async () => ({ ready: true, requests: 0, errors: 0, warnings: [] }),
    installer,
    tell: async ({ order }) => {
      seen.push({ told: order, lies: lies() });
      const answer = answers[seen.length - 1];
      if (answer === undefined) end();
      return { order: answer?.() ?? null, ask_again_ms: 1 };
    },
    now: () => new Date(),
    random: () => 0.5,
    log: silentLog(),
    stop: new AbortController().signal,
    timings: { first: 1, failed: 1, least: 1, most: 1 },
  });
  await isOver;
  return seen.slice(0, answers.length + 1);
}

test("a release that is taken back before it was installed: the order is gone when the agent says that it runs what it had", async () => {
  const one = host();
  const seen = await converse(one, [() => go, () => back]);
  expect(seen).toEqual([
    { told: null, lies: undefined },
    { told: { id: "t-go", state: "taken", reason: "" }, lies: "t-go 2.0.0\n" },
    { told: { id: "t-back", state: "done", reason: "" }, lies: undefined },
  ]);
});

test("while the installer is at it, the agent says so", async () => {
  const one = host();
  const seen = await converse(one, [
    () => go,
    () => {
      writeFileSync(one.at("outcome"), "t-go 2.0.0 installing \n");
      return back;
    },
    () => {
      writeFileSync(one.at("outcome"), "t-go 2.0.0 refused taken back before it was installed\n");
      return back;
    },
  ]);
  expect(seen.slice(2).map(({ told, lies }) => [told?.state, told?.reason, lies])).toEqual([
    ["taken", "another version is being installed", undefined],
    ["done", "", undefined],
  ]);
});

test("an order of an earlier start is left until central is heard, and removed when it wants nothing", async () => {
  const one = host();
  await one.installer.ask(go);
  const seen = await converse(one, [() => null]);
  expect(seen).toEqual([
    { told: null, lies: "t-go 2.0.0\n" },
    { told: null, lies: undefined },
  ]);
});

test("an order that cannot be removed is told, and nothing is told to be done", async () => {
  const one = host();
  mkdirSync(one.at("rollout/order/in-the-way"), { recursive: true });
  const seen = await converse(one, [() => back]);
  expect(seen[1]?.told).toMatchObject({
    state: "taken",
    reason: expect.stringContaining("the file of the order cannot be changed: "),
  });
});
