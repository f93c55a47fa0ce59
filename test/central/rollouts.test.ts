// Rollouts of a release over ten hosts: a whole central with its command, and the agents' own asking; the installation on the host is simulated.

import { afterEach, expect, test } from "vitest";
import { auditCommand } from "../../src/cli/central-audit.ts";
import { centralStatusCommand } from "../../src/cli/central-status.ts";
import { customerCommand } from "../../src/cli/central-customer.ts";
import { rolloutCommand } from "../../src/cli/central-rollout.ts";
import { userCommand } from "../../src/cli/central-user.ts";
import type { Command } from "../../src/base/command.ts";
import { call, settingsOf, start } from "../support/central-whole.ts";
import { connectAgent, type FakeAgent } from "../support/fake-agent.ts";
import { freePorts } from "../support/free-ports.ts";
import { RolledHost, type RolledHostOptions } from "../support/rolled-host.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { run } from "../cli/command-rig.ts";

const release = "2.0.0";
const had = "1.0.0";
const limits = ["--soak", "1s", "--silence", "10s", "--grace", "1s", "--wave", "20"] as const;

let scene: Scene | undefined;
afterEach(async () => {
  await scene?.[Symbol.asyncDispose]();
  scene = undefined;
});

type Row = Readonly<Record<string, unknown>>;

/** A central, a customer with five sites of two hosts each. */
class Scene implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();
  readonly stateDir = this.#stack.use(tempDir()).path;
  readonly agents: FakeAgent[] = [];
  hosts: RolledHost[] = [];
  customer = 0;
  #port = 0;
  #central: Awaited<ReturnType<typeof start>> | undefined;

  /** `optionsOf`: of the host with this number, from 0. */
  static async start(
    optionsOf: (no: number) => Partial<RolledHostOptions>,
    hosts = 10,
  ): Promise<Scene> {
    const made = new Scene();
    [made.#port = 0] = await freePorts(1);
    await made.startCentral();
    made.customer = Number((await made.facts(customerCommand, "add", "Example Ltd"))["id"]);
    const user = ["anna", "--customer", String(made.customer), "--token"] as const;
    const token = String((await made.facts(userCommand, "add", ...user))["token"]);
    for (let no = 0; no < 5; no++) {
      const site = await call(made.url, "POST", "/deployment-site/", token, { tags: "eu" });
      const [name, secret] = [String(site["name16"]), String(site["secret16"])];
      made.agents.push(await connectAgent(`${made.url}/agent-api/v1`, name, secret));
    }
    for (let no = 0; no < hosts; no++) {
      const agent = made.agents[no % 5] as FakeAgent;
      const instanceId = `instance-${no}`;
      const host = await RolledHost.start({ agent, instanceId, had, release, ...optionsOf(no) });
      made.#stack.use(host);
      made.hosts.push(host);
    }
    return made;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async startCentral(): Promise<void> {
    this.#central = await start(settingsOf(this.stateDir, "", this.#port));
  }

  async stopCentral(): Promise<void> {
    await this.#central?.[Symbol.asyncDispose]();
    this.#central = undefined;
  }

  async say(command: Command, ...args: readonly string[]): Promise<string> {
    return run(command, [...args, "--state-dir", this.stateDir]);
  }

  async facts(command: Command, ...args: readonly string[]): Promise<Row> {
    return Object(JSON.parse(await this.say(command, ...args, "--json"))) as Row;
  }

  async rollout(...more: readonly string[]): Promise<Row> {
    const of = ["--customer", String(this.customer), "--release", release] as const;
    return this.facts(rolloutCommand, "start", ...of, ...limits, ...more);
  }

  async status(): Promise<{ readonly head: Row; readonly hosts: readonly Row[] }> {
    const { hosts, ...head } = await this.facts(rolloutCommand, "status");
    return { head, hosts: hosts as readonly Row[] };
  }

  async ends(state: string): Promise<Awaited<ReturnType<Scene["status"]>>> {
    return until(
      `the rollout is ${state}`,
      async () => {
        const status = await this.status();
        return status.head["state"] === state && status;
      },
      120_000,
    );
  }

  async warns(code: string): Promise<void> {
    await until(`central warns: ${code}`, async () =>
      (await this.say(centralStatusCommand)).includes(code),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
    await this.stopCentral();
  }
}

/** By the order of sites; who has not spoken yet is passed over, so it may be asked before. */
const thirdAsked = 2;

test("a release whose third host dies under it goes back on all, and central says why", async () => {
  scene = await Scene.start((no) => (no === thirdAsked ? { behaviour: "dies" } : {}));
  const begunMs = performance.now();
  await scene.rollout();
  const dead = scene.hosts[thirdAsked] as RolledHost;
  await until("the third host died", () => dead.version === release, 120_000);
  const diedMs = performance.now();
  const returning = await until("the release goes back", async () => {
    const status = await (scene as Scene).status();
    return status.head["state"] === "returning" && status;
  });
  const given = scene.hosts.filter(({ version }) => version === release);
  expect(given.length).toBeLessThanOrEqual(3);
  expect(returning.head["reason"]).toBe("3/instance-2: was not heard for 10 s after it was asked");
  const others = scene.hosts.filter((host) => host !== dead);
  await until("the others have the version before", () =>
    others.every(({ version }) => version === had),
  );
  process.stdout.write(
    `third host dead ${Math.round(diedMs - begunMs)} ms after the start; all others back ${Math.round(performance.now() - diedMs)} ms later\n`,
  );
  // The dead one is told as soon as it is heard.
  await dead.restart();
  const { head, hosts } = await scene.ends("returned");
  await dead.quiet();
  expect(scene.hosts.map(({ version }) => version)).toEqual(scene.hosts.map(() => had));
  expect(head["reason"]).toContain("instance-2");
  expect(hosts.filter(({ state }) => state === "back")).toHaveLength(given.length);
  expect(hosts.filter(({ state }) => state === "stays")).toHaveLength(10 - given.length);
  expect(hosts.find((one) => one["instance_id"] === "instance-2")).toMatchObject({
    had,
    has: had,
    reason: "was not heard for 10 s after it was asked",
  });
  const text = await scene.say(rolloutCommand, "status");
  expect(text).toMatch(/^3\/instance-2 +1\.0\.0 +– +1\.0\.0 +back +\S+ +was not heard for 10 s/m);
  const trail = await scene.say(auditCommand);
  expect(trail).toMatch(/rollout returning .*instance-2: was not heard/);
  await scene.warns("rollout_returned");
});

test("a release that does not start on a host goes back, though central restarts meanwhile", async () => {
  scene = await Scene.start((no) => (no === thirdAsked ? { behaviour: "crashes" } : {}));
  await scene.rollout();
  await until("the canary runs it", () => scene?.hosts.some(({ version }) => version === release));
  await scene.stopCentral();
  await scene.startCentral();
  const { head } = await scene.ends("returned");
  expect(head["reason"]).toBe(
    "3/instance-2: 2.0.0 did not stay up: TypeError: x is not a function",
  );
  expect(scene.hosts.map(({ version }) => version)).toEqual(scene.hosts.map(() => had));
  for (const host of scene.hosts)
    expect(host.ran.filter((version) => version === release).length).toBeLessThanOrEqual(1);
});

test("a release that warns of what was not before goes back; warnings of before do not count", async () => {
  scene = await Scene.start((no) => (no === 0 ? { behaviour: "warns" } : {}));
  await scene.rollout();
  const { head } = await scene.ends("returned");
  expect(head["reason"]).toBe("1/instance-0: warns of origin_full, as it did not before");
  expect(scene.hosts[0]?.orders.map(({ version }) => version)).toEqual([release, had]);
  expect(scene.hosts.map(({ version }) => version)).toEqual(scene.hosts.map(() => had));
});

test("a good release is taken by all but the hosts that are pinned, do not allow it, cannot or have it", async () => {
  scene = await Scene.start((no) => {
    if (no === 1) return { takes: "held" };
    if (no === 4) return { takes: "off" };
    if (no === 5) return { behaviour: "no-package" };
    return no === 8 ? { had: release } : {};
  });
  const started = await scene.rollout("--wave", "50", "--tag", "eu");
  expect(started).toMatchObject({ state: "running", tag: "eu", hosts: { waiting: 10 } });
  await expect(scene.rollout()).rejects.toThrow(/rollout \d+ of this customer is not over/);
  const { hosts } = await scene.ends("done");
  const told = Object.fromEntries(
    hosts.map((one) => [one["instance_id"], [one["state"], one["has"], one["reason"]]]),
  );
  expect(told).toEqual({
    "instance-0": ["proven", release, null],
    "instance-1": ["stays", had, "pinned: its packages are held"],
    "instance-2": ["proven", release, null],
    "instance-3": ["proven", release, null],
    "instance-4": ["stays", had, "this host does not let central install releases"],
    "instance-5": ["missed", had, "E: Version '2.0.0' for 'accel-agent' was not found"],
    "instance-6": ["proven", release, null],
    "instance-7": ["proven", release, null],
    "instance-8": ["stays", release, "has 2.0.0 already"],
    "instance-9": ["proven", release, null],
  });
  expect(scene.hosts.filter(({ orders }) => orders.length > 0)).toHaveLength(7);
  // Long after: by word of the operator.
  const id = String(started["rollout_id"]);
  await scene.say(rolloutCommand, "back", id, "--reason", "customers complain");
  const { head } = await scene.ends("returned");
  expect(head["reason"]).toMatch(/^back by .*: customers complain$/);
  expect(scene.hosts.map(({ version }) => version)).toEqual(
    scene.hosts.map(({ instanceId }) => (instanceId === "instance-8" ? release : had)),
  );
});

test("a rollout that is paused asks nobody further until it is resumed", async () => {
  scene = await Scene.start(() => ({}), 4);
  const started = await scene.rollout("--wave", "25");
  const id = String(started["rollout_id"]);
  await scene.facts(rolloutCommand, "pause", id, "--reason", "lunch");
  const paused = await until("what was asked is proven or waits", async () => {
    const { hosts } = await (scene as Scene).status();
    return hosts.every(({ state }) => state === "proven" || state === "waiting") && hosts;
  });
  expect(paused.filter(({ state }) => state === "proven").length).toBeLessThanOrEqual(1);
  expect((await scene.status()).head).toMatchObject({ state: "paused" });
  await scene.warns("rollout_paused");
  await expect(scene.say(rolloutCommand, "pause", id)).rejects.toThrow(`rollout ${id} is paused`);
  await scene.facts(rolloutCommand, "resume", id);
  const { hosts } = await scene.ends("done");
  expect(hosts.map(({ state }) => state)).toEqual(hosts.map(() => "proven"));
  expect(await scene.say(rolloutCommand, "list")).toMatch(/^1 +1 +2\.0\.0 +– +done /m);
});

test("what cannot be is refused in words", async () => {
  scene = await Scene.start(() => ({}), 1);
  const say = async (...args: readonly string[]): Promise<string> =>
    (scene as Scene).say(rolloutCommand, ...args);
  await expect(say("start", "--customer", "1")).rejects.toThrow("--release VERSION");
  const start = ["start", "--customer", "1", "--release"] as const;
  await expect(say(...start, "two")).rejects.toThrow(/release/);
  await expect(say(...start, "2.0.0", "--canary", "0")).rejects.toThrow(/canary/);
  await expect(say(...start, "2.0.0", "--soak", "soon")).rejects.toThrow(/--soak soon/);
  await expect(say(...start, "2.0.0", "--tag", "us")).rejects.toThrow(
    "customer 1 has no host with the tag us that was seen within a day",
  );
  await expect(say("start", "--customer", "77", "--release", "2.0.0")).rejects.toThrow(
    "there is no customer 77",
  );
  await expect(say("status")).rejects.toThrow("there was no rollout yet");
  await expect(say("back", "9")).rejects.toThrow("there is no rollout 9");
  await expect(say("back")).rejects.toThrow("rollout back takes the number of a rollout");
  await expect(say("pause", "1", "--canary", "2")).rejects.toThrow(
    "--canary does not go with rollout pause",
  );
});
