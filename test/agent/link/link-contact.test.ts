// Being in touch with central whatever stands in the way: lost and wedged channels, proxies, refusals, a central that is not there.

import { pino } from "pino";
import { expect, test } from "vitest";
import { listenHttp } from "../../../src/base/http-listener.ts";
import { FakeCentral, name16 } from "../../support/fake-central.ts";
import { clear, Effects, rigEdge, startRig, type Rig } from "../../support/link-rig.ts";
import { freePorts } from "../../support/free-ports.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import { firstPollMs, pollPhaseMs } from "../../../src/agent/link/link.ts";

const connected = async (rig: Rig): Promise<unknown> =>
  until("connected", () => rig.link.status().state === "connected");
const applied = async (rig: Rig, seq: number): Promise<unknown> =>
  until(`applied ${seq}`, () => rig.link.status().applied_seq === seq);

test("central that is not there blocks nothing; the link takes up when it comes", async () => {
  using dir = tempDir();
  await using reserved = await listenHttp(() => undefined, { host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${reserved.port}`;
  await reserved[Symbol.asyncDispose]();
  const effects = new Effects();
  await using rig = startRig({ central: { url }, dir: dir.path, effects });
  await until("a warning", () => rig.codes().includes("central_unreachable"));
  expect(rig.health.list()[0]).toMatchObject({ severity: "info" });
  expect(rig.link.status()).toMatchObject({
    state: "disconnected",
    epoch: null,
    last_error: { code: "CENTRAL_UNREACHABLE" },
  });
  expect(rig.headsApplied()).toBe(0);
});

test("what central has not told since the start is not known: no lag of 0", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const headGauge = /^accel_agent_journal_head_seq \d+$/m;
  {
    central.faults.refuse = "clock_skew";
    await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
    await until("told", () => rig.codes().includes("clock_skewed"));
    expect(rig.link.status()).toMatchObject({ head_seq: null, head_told_at: null, lag: null });
    expect(await rig.registry.metrics()).not.toMatch(headGauge);
    central.faults.refuse = undefined;
    await connected(rig);
    central.append("cache.clear", clear("c1"));
    await applied(rig, 1);
    const told = rig.link.status();
    expect(told).toMatchObject({ head_seq: 1, head_told_at: expect.any(String), lag: 0 });
    expect(await rig.registry.metrics()).toMatch(headGauge);
  }
  // Another start, and central away: how far it is by now nobody knows; how far the agent is stands in agent.db.
  central.faults.refuse = "clock_skew";
  await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
  expect(rig.link.status()).toMatchObject({ applied_seq: 1, head_seq: null, lag: null });
  const metrics = await rig.registry.metrics();
  expect(metrics).not.toMatch(headGauge);
  expect(metrics).toContain("accel_agent_journal_applied_seq 1");
});

test("the last error has a time, and is over once central answers", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.refuse = "clock_skew";
  await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
  await until("told", () => rig.codes().includes("clock_skewed"));
  const during = rig.link.status().last_error;
  expect(during).toMatchObject({ code: "CLOCK_SKEWED", at: expect.any(String), over_at: null });
  central.faults.refuse = undefined;
  await connected(rig);
  const after = await until("it is over", () => rig.link.status().last_error?.over_at ?? undefined);
  expect(Date.parse(after)).toBeGreaterThanOrEqual(Date.parse(during?.at ?? after));
});

test("a dropped channel comes back and brings what was missed", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({ central, dir: dir.path, effects });
  await connected(rig);
  for (let round = 1; round <= 3; round++) {
    central.faults.withholdEntries = true;
    central.append("cache.clear", clear(`c${round}`));
    central.faults.withholdEntries = false;
    central.dropChannels();
    await applied(rig, round);
  }
  expect(effects.count("cache.clear")).toBe(3);
  expect(effects.snapshots.length).toBe(1);
  const metrics = await rig.registry.metrics();
  expect(metrics).toMatch(/accel_agent_link_reconnects_total [3-9]/);
});

test("a secret that was replaced without a grace is told as a wrong secret, not as an unreachable central", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
  await connected(rig);
  const told: string[] = [];
  const raise = rig.health.raise.bind(rig.health);
  rig.health.raise = (code, ...more) => {
    told.push(code);
    raise(code, ...more);
  };
  central.faults.refuse = "wrong_secret";
  central.revoke();
  await until("told", () => told.length > 0);
  expect(told[0]).toBe("wrong_secret16");
  expect(rig.link.status().last_error).toMatchObject({ code: "WRONG_SECRET16" });
});

test("a half-open channel is dead after two missed pongs", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.losePongs = true;
  const timings = { pingIntervalMs: 30 };
  await using rig = startRig({ central, dir: dir.path, effects: new Effects(), timings });
  await until("a second channel", () => central.hellos.length >= 2);
  expect(rig.link.status().last_error?.message).toContain("pong");
  central.faults.losePongs = false;
  await connected(rig);
  // Two pongs may be late on a busy machine; a channel whose pongs do not count never lives for ten pings.
  let since = { hellos: 0, pings: 0 };
  await until("ten pings over one channel", () => {
    const { hellos, pings } = central;
    if (hellos.length !== since.hellos) since = { hellos: hellos.length, pings };
    return pings >= since.pings + 10;
  });
});

test("the poll finds what a wedged channel hides", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.wedged = true;
  // The first poll a moment from now: at the phase of the name.
  const startMs = pollPhaseMs(name16, 200) + 150;
  const beganMs = performance.now();
  const effects = new Effects();
  await using rig = startRig({
    central,
    dir: dir.path,
    effects,
    timings: { pollPeriodMs: 200 },
    now: () => new Date(startMs + performance.now() - beganMs),
  });
  expect(firstPollMs(pollPhaseMs(name16, 200), startMs, 200)).toBe(50);
  await connected(rig);
  central.append("cache.clear", clear("c1"));
  await applied(rig, 1);
  expect(rig.link.status().state).toBe("connected");
  expect(central.channels).toBe(1);
  expect(central.requests.some((line) => line.startsWith("GET /agent-api/v1/journal?"))).toBe(true);
});

test("what both paths bring is applied once", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  const timings = { pollPeriodMs: 5 };
  await using rig = startRig({ central, dir: dir.path, effects, timings });
  await connected(rig);
  for (let n = 1; n <= 40; n++) {
    central.append("cache.clear", clear(`c${n}`));
    if (n % 10 === 0) await applied(rig, n);
  }
  const begins = effects.trace.filter((line) => line.startsWith("begin"));
  expect(begins).toEqual(Array.from({ length: 40 }, (_, i) => `begin ${i + 1}`));
});

test.each([404, 403, 502, 503, 200])(
  "an upgrade answered %i on the way: long polls, receipts and reports by requests",
  async (status) => {
    using dir = tempDir();
    await using central = await FakeCentral.start();
    central.faults.upgradeStatus = status;
    const effects = new Effects();
    // A gateway without central may have it again in a moment.
    const [upgradeRetryMs, gatewayRetryMs] = status > 500 ? [600_000, 400] : [400, 600_000];
    const timings = { upgradeRetryMs, gatewayRetryMs, longPollMs: 10_000 };
    await using rig = startRig({ central, dir: dir.path, effects, timings });
    await until("polling", () => rig.link.status().state === "polling");
    await until("the head is confirmed", () => rig.headsApplied() === 1);
    central.append("cache.clear", clear("c1"));
    await until("the receipt", () => central.receipts.length === 1);
    // Hello never came through: the report says what it would have said.
    const told = { agent_version: "0.0.0", edge: rigEdge, instance_id: rig.db.instanceId };
    expect(await until("a report", () => central.reports[0])).toMatchObject(told);
    await until("acknowledged", () => rig.link.status().receipts_unacknowledged === 0);
    const polled = central.requests.findIndex((line) => line.includes("wait="));
    expect(central.headers[polled]).toMatchObject({ "accel-instance": rig.db.instanceId });
    const next_try_at = expect.stringMatching(/^\d{4}-/);
    expect(rig.link.status()).toMatchObject({ state: "polling", applied_seq: 1, next_try_at });
    central.faults.upgradeStatus = undefined;
    await connected(rig);
  },
);

test("status says when a channel is tried next; a poll that finds central does not wait for it", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.refuse = "clock_skew";
  const someDaysMs = 1e9;
  const backoff = { firstMs: someDaysMs, mostMs: someDaysMs };
  const timings = { backoff, pollPeriodMs: 300 };
  await using rig = startRig({ central, dir: dir.path, effects: new Effects(), timings });
  const at = await until("a next try", () => rig.link.status().next_try_at ?? undefined);
  expect(rig.link.status().state).toBe("disconnected");
  expect(Date.parse(at)).toBeLessThan(Date.now() + someDaysMs);
  central.faults.refuse = undefined;
  await connected(rig);
  expect(rig.link.status().next_try_at).toBeNull();
});

test.each([
  ["a closed port", "new", undefined],
  ["a closed port", "known", undefined],
  ["a proxy that says 502", "new", 502],
  ["a proxy that says 502", "known", 502],
] as const)(
  "behind %s a host that is %s finds central soon, whatever the waits after other failures are",
  async (_what, host, status) => {
    using dir = tempDir();
    const [port = 0] = await freePorts(1);
    const backoff = { firstMs: 200, mostMs: 1e9 };
    const timings = { backoff, refused: { firstMs: 5, mostMs: 20 } };
    const nobody = { url: `http://127.0.0.1:${port}` };
    await using before = await FakeCentral.start(port);
    if (host === "known") {
      await using rig = startRig({ central: nobody, dir: dir.path, effects: new Effects() });
      await connected(rig);
    }
    await before[Symbol.asyncDispose]();
    await using proxy =
      status === undefined
        ? undefined
        : await listenHttp((_request, response) => response.writeHead(status).end(), {
            host: "127.0.0.1",
            port,
          });
    await using rig = startRig({ central: nobody, dir: dir.path, effects: new Effects(), timings });
    const failures = new Set<string>();
    await until("it failed often", () => {
      const { code, at } = rig.link.status().last_error ?? {};
      if (code === "CENTRAL_UNREACHABLE" && at !== undefined) failures.add(at);
      return failures.size >= 12;
    });
    await proxy?.[Symbol.asyncDispose]();
    await using central = await FakeCentral.start(port, before);
    await connected(rig);
    expect(central.hellos).toHaveLength(1);
  },
);

test("after this process stood still, what is stored is doubted before anything else, and the head is asked for anew", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const timings = { wakeLookMs: 10, frozenMs: 300 };
  await using rig = startRig({ central, dir: dir.path, effects: new Effects(), timings });
  await connected(rig);
  await until("the head is applied", () => rig.headsApplied() > 0);
  const before = { heads: rig.headsApplied(), hellos: central.hellos.length, wakes: rig.wakes() };
  // As SIGSTOP does, and a hypervisor: nothing of this process runs.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
  await until("it woke", () => rig.wakes() > before.wakes);
  await until("another hello", () => central.hellos.length > before.hellos);
  await until("the head is applied", () => rig.headsApplied() > before.heads);
  await connected(rig);
  expect(rig.link.status().heard_at).toEqual(expect.stringMatching(/^\d{4}-/));
});

test("a refusal is settled when long polls are answered", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.upgradeStatus = 404;
  central.faults.refuse = "clock_skew";
  await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
  await until("told", () => rig.codes().includes("clock_skewed"));
  central.faults.refuse = undefined;
  await until("polling", () => rig.link.status().state === "polling");
  expect(rig.codes()).toEqual([]);
});

test("by requests, receipts go out only when central has judged our history", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  {
    await using rig = startRig({ central, dir: dir.path, effects });
    await connected(rig);
    central.faults.loseAcks = 1;
    central.append("cache.clear", clear("c1"));
    await until("a receipt that nobody acknowledged", () => central.receipts.length === 1);
  }
  central.faults.upgradeStatus = 404;
  central.faults.delayMs = 250;
  const before = central.requests.length;
  await using rig = startRig({ central, dir: dir.path, effects });
  const asked = (what: string): boolean =>
    central.requests.slice(before).some((line) => line.includes(what));
  await until("the journal is asked for", () => asked("/journal?"));
  await until("the receipt is told again", () => asked("/receipts"));
  const [journalMs = 0, receiptsMs = 0] = ["/journal?", "/receipts"].map((what) =>
    central.requestedMs.find((_, no) => no >= before && central.requests[no]?.includes(what)),
  );
  expect(receiptsMs - journalMs).toBeGreaterThan(200);
  await until("acknowledged", () => rig.link.status().receipts_unacknowledged === 0);
});

test("a proxy that does not wait is not asked without pause", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.upgradeStatus = 426;
  central.faults.impatient = true;
  const timings = { longPollPauseMs: 60 };
  await using rig = startRig({ central, dir: dir.path, effects: new Effects(), timings });
  const asked = (): number =>
    central.requests.filter((line) => line.includes("/journal?") && line.includes("wait=")).length;
  await until("three long polls", () => asked() >= 3);
  const before = { count: asked(), ms: performance.now() };
  await until("three more", () => asked() >= before.count + 3);
  expect(performance.now() - before.ms).toBeGreaterThan(110);
  expect(rig.link.status().state).toBe("polling");
});

test("drain is obeyed: the channel is left and taken up after the time that central said, and the log says why", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const lines: { readonly state?: string; readonly why?: string }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  await using rig = startRig({ central, dir: dir.path, effects: new Effects(), log });
  await connected(rig);
  const atMs = performance.now();
  central.say({ type: "drain", reconnect_after_ms: 150 });
  await until("left", () => central.channels === 0);
  expect(central.closes[0]?.code).toBe(1000);
  await until("again", () => central.hellos.length === 2);
  expect(performance.now() - atMs).toBeGreaterThan(149);
  expect(rig.codes()).toEqual([]);
  const told = lines.filter(({ state }) => state !== undefined);
  expect(told.map(({ state, why }) => [state, why?.slice(0, 37)])).toEqual([
    ["connected", undefined],
    ["disconnected", "central asked this agent to come anew"],
    ["connected", undefined],
  ]);
});

test.each([
  ["an unknown type", { type: "dance" }],
  ["a field too many", { type: "pong", n: 1, more: true }],
  ["an entry that is none", { type: "entries", entries: [{ seq: "1" }] }],
])("%s ends the channel with 1008 and the reason", async (_what, message) => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
  await connected(rig);
  central.say(message);
  await until("closed", () => central.closes.length > 0);
  expect(central.closes[0]?.code).toBe(1008);
  expect(central.closes[0]?.reason).toContain(message.type);
  expect(rig.link.status().last_error?.code).toBe("MESSAGE_INVALID");
  await connected(rig);
});

test.each([
  ["unknown_name", "UNKNOWN_NAME16"],
  ["wrong_secret", "WRONG_SECRET16"],
  ["clock_skew", "CLOCK_SKEWED"],
] as const)("401 %s is told with its own code and hint, and stops nothing", async (code, fault) => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.refuse = code;
  await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
  await until("told", () => rig.codes().includes(fault.toLowerCase()));
  expect(rig.link.status().last_error).toMatchObject({ code: fault });
  expect(rig.link.status().last_error?.hint).not.toBe("");
  expect(rig.sitesDeleted()).toBe(0);
  central.faults.refuse = undefined;
  await connected(rig);
  expect(rig.codes()).toEqual([]);
});

test("401 site_deleted is told once and forgets; should the site be there again, a snapshot is taken", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({ central, dir: dir.path, effects });
  await connected(rig);
  central.append("cache.clear", clear("c1"));
  await applied(rig, 1);
  central.faults.refuse = "site_deleted";
  central.dropChannels();
  await until("told", () => rig.sitesDeleted() === 1);
  const { length } = central.requests;
  await until("asked again", () => central.requests.length > length + 3);
  expect(rig.sitesDeleted()).toBe(1);
  expect(rig.codes()).toEqual(["site_deleted"]);
  expect(rig.link.status().epoch).toBeNull();
  central.faults.refuse = undefined;
  await connected(rig);
  expect(effects.snapshots.map(({ seq }) => seq)).toEqual([0, 1]);
});

test("a token that has ended is renewed and nobody notices", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.tokenCalls = 20;
  central.faults.upgradeStatus = 404;
  const timings = { pollPeriodMs: 10 };
  await using rig = startRig({ central, dir: dir.path, effects: new Effects(), timings });
  for (let n = 1; n <= 40; n++) {
    central.append("cache.clear", clear(`c${n}`));
    await applied(rig, n);
  }
  expect(central.tokensGiven).toBeGreaterThan(2);
  expect(rig.link.status().last_error).toBeNull();
});

test("it stops soon, whatever hangs", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({
    central,
    dir: dir.path,
    effects,
    appliers: { "cache.clear": async () => new Promise(() => undefined) },
  });
  await connected(rig);
  central.append("cache.clear", clear("c1"));
  await until("taken", () => rig.link.status().head_seq === 1);
  central.faults.wedged = true;
  central.faults.delayMs = 60_000;
  const atMs = performance.now();
  await rig.link[Symbol.asyncDispose]();
  expect(performance.now() - atMs).toBeLessThan(20_000); // Half a second on a machine of its own.
  expect(rig.link.status().state).toBe("disconnected");
});
