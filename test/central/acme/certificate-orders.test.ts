// Orders of certificates over a real store: from the devlove to the site, what holds them up, and that a crash anywhere loses none.

import { afterEach, beforeEach, expect, test } from "vitest";
import type { CertificateOrder } from "../../../src/wire/customer/certificate-order.ts";
import { until } from "../../support/until.ts";
import { member } from "../api/api-harness.ts";
import { acme, AcmeScene, domain } from "./acme-scene.ts";

const dayMs = 86_400_000;
const ordering = { [domain]: { tls: { acme } } };

let scene: AcmeScene;
beforeEach(async () => {
  scene = await AcmeScene.open();
});
afterEach(async () => scene[Symbol.asyncDispose]());

test("a devlove orders, the site gets it, and nothing of the proof stays", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  const order = await scene.untilIssued();
  expect(order).toMatchObject({
    domain,
    names: [domain],
    ...acme,
    attempts: 0,
    error: null,
    left_out: [],
    certificate: { names: [domain] },
  });
  const { siteId } = scene;
  await until("delivered", async () => (await scene.certificates()).length === 1);
  expect(await scene.certificates()).toEqual([
    {
      fingerprint: order.certificate?.fingerprint,
      deployment_site_id: siteId,
      acme_order_id: order.id,
      names: JSON.stringify([domain]),
    },
  ]);
  expect(await scene.told()).toEqual([["token-0-0"], []]);
  expect(scene.directory.accounts).toEqual([
    JSON.stringify({ termsOfServiceAgreed: true, contact: [`mailto:${acme.email}`] }),
  ]);
  const renewMs = Date.parse(order.next_at) - Date.parse(order.certificate?.not_before ?? "");
  expect(renewMs / dayMs).toBeCloseTo(58.5, 1);
  const entries = await scene.api.journal(siteId);
  expect(JSON.stringify(entries.at(-1))).not.toContain("PRIVATE KEY");
});

test("a devlove without tls.acme orders nothing, and asks nobody", async () => {
  await scene.activate({ [domain]: {} });
  await using _ = scene.start();
  await until("looked at", async () => {
    const rows = await scene.api.store.selectFrom("acme_domains").selectAll().execute();
    return rows.length === 1;
  });
  expect(await scene.orders()).toEqual([]);
  expect(scene.directory.asked).toEqual([]);
});

test("the directory hears of a proof when every instance in touch has it", async () => {
  await scene.addInstance("instance-one");
  await scene.addInstance("instance-two");
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilOrder("told", ({ state }) => state === "proving");
  await scene.receipt("instance-one", "applied");
  for (let seconds = 0; seconds < 120; seconds += 10) {
    scene.forward(10_000);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(scene.directory.asked.some((one) => one.includes("/look/"))).toBe(false);
  await scene.receipt("instance-two", "applied", { domain, challenges: 1 });
  await scene.untilIssued();
});

test("an instance that is in touch and confirms nothing is waited for ten minutes", async () => {
  await scene.addInstance("instance-one");
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilOrder("told", ({ state }) => state === "proving", { moves: false });
  const began = scene.api.clock.getTime();
  scene.forward(590_000);
  const waiting = await scene.untilOrder("says so", ({ error }) => error !== null);
  expect(waiting).toMatchObject({ state: "proving", attempts: 0 });
  expect(waiting.error).toMatch(
    /^waits for the host instance-one of deployment site \d+, which is in touch and does not confirm/,
  );
  await scene.untilIssued();
  const tookS = (scene.api.clock.getTime() - began) / 1_000;
  expect(tookS).toBeGreaterThanOrEqual(600);
  expect(tookS).toBeLessThan(660);
});

test("an instance that is away is waited for 90 seconds, one that is too old not at all", async () => {
  scene.isLive = false;
  await scene.addInstance("instance-one");
  await scene.addInstance("instance-old");
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilOrder("told", ({ state }) => state === "proving", { moves: false });
  await scene.receipt("instance-old", "refused", { reason: "this agent does not know entries" });
  const began = scene.api.clock.getTime();
  const waiting = await scene.untilOrder("says so", ({ error }) => error !== null);
  expect(waiting).toMatchObject({ state: "proving", attempts: 0 });
  expect(waiting.error).toMatch(
    /^waits for the host instance-one of deployment site \d+, which was in touch last at [\d-]+T[\d:.]+Z$/,
  );
  await scene.untilIssued();
  expect((await scene.orders())[0]?.error).toBeNull();
  const tookS = (scene.api.clock.getTime() - began) / 1_000;
  expect(tookS).toBeGreaterThanOrEqual(90);
  expect(tookS).toBeLessThan(120);
});

test("an instance that is away was last heard of at some time: from then on it is waited for", async () => {
  scene.isLive = false;
  await scene.addInstance("instance-one");
  scene.forward(60_000);
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilOrder("told", ({ state }) => state === "proving", { moves: false });
  const began = scene.api.clock.getTime();
  await scene.untilIssued();
  const tookS = (scene.api.clock.getTime() - began) / 1_000;
  expect(tookS).toBeGreaterThanOrEqual(30);
  expect(tookS).toBeLessThan(60);
});

test("an instance that took a snapshot in place of the challenges is told once more", async () => {
  await scene.addInstance("instance-one");
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilOrder("told", ({ state }) => state === "proving", { moves: false });
  await scene.call("POST", "/symenckeys/", { deployment_site_id: scene.siteId });
  await scene.receipt("instance-one", "applied", { snapshot: true });
  await until("told once more", async () => {
    scene.forward(1_000);
    return (await scene.told()).length === 2;
  });
  expect(await scene.told()).toEqual([["token-0-0"], ["token-0-0"]]);
  await scene.receipt("instance-one", "applied");
  await scene.untilIssued();
});

test("a host that does not answer holds up the directory's look, and after an hour is left out", async () => {
  const sub = await scene.addSubDomain("away");
  scene.looks = (host) =>
    host === sub ? { kind: "elsewhere", reason: "it answers 404" } : { kind: "there" };
  await scene.activate(ordering);
  await using _ = scene.start();
  const waiting = await scene.untilOrder("waits", ({ error }) => error !== null);
  expect(waiting).toMatchObject({ state: "proving", error: `${sub}: it answers 404` });
  expect(scene.directory.asked.some((one) => one.includes("/look/"))).toBe(false);
  scene.forward(3_600_000);
  const without = await scene.untilOrder("left out", ({ certificate }) => certificate !== null);
  expect(without).toMatchObject({
    state: "failed",
    left_out: [{ host: sub, reason: "it answers 404" }],
    certificate: { names: [domain] },
  });
  scene.looks = () => ({ kind: "there" });
  scene.forward(dayMs);
  const whole = await scene.untilIssued();
  expect(whole.certificate?.names).toEqual([sub, domain]);
  expect((await scene.certificates()).length).toBe(1);
});

test("what the directory says decides when it is asked again", async () => {
  const { directory } = scene;
  directory.noncesRefused = 4;
  const limited = { status: 429, type: "rateLimited", detail: "too many", retryAfter: "7200" };
  directory.refusals.push(["/order", limited]);
  await scene.activate(ordering);
  await using _ = scene.start();
  const order = await scene.untilOrder("limited", ({ error }) => error !== null, { moves: false });
  expect(order.error).toBe("the directory says: too many (rateLimited)");
  expect(order.state).toBe("failed");
  expect(Date.parse(order.next_at) - scene.api.clock.getTime()).toBe(7_200_000);
  scene.forward(7_100_000);
  const asked = directory.asked.length;
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(directory.asked.length).toBe(asked);
  scene.forward(100_000);
  await scene.untilIssued();
});

test("a proof that the directory refuses is told in its words, and another order comes later", async () => {
  const { directory } = scene;
  directory.looks = () => "invalid";
  await scene.activate(ordering);
  await using _ = scene.start();
  const failed = await scene.untilOrder("failed", ({ state }) => state === "failed");
  expect(failed.error).toBe(`${domain}: the directory says: saw something else (unauthorized)`);
  expect(await scene.told()).toEqual([["token-0-0"], []]);
  directory.looks = () => "valid";
  scene.forward(dayMs);
  await scene.untilIssued();
});

test("a directory that forgot account and order is told of both again", async () => {
  const { directory } = scene;
  scene.looks = () => ({ kind: "elsewhere", reason: "not yet" });
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilOrder("waits", ({ error }) => error !== null);
  directory.refusals.push(["/order/0", { status: 400, type: "accountDoesNotExist" }]);
  directory.orders.splice(0);
  scene.looks = () => ({ kind: "there" });
  await scene.untilIssued();
  expect(directory.accounts.length).toBe(2);
});

test("an order that the directory forgets before its challenges are known is placed anew", async () => {
  const { directory } = scene;
  directory.refusals.push(["/proof/", { status: 404, type: "malformed", detail: "no such order" }]);
  await scene.activate(ordering);
  await using _ = scene.start();
  const forgotten = await scene.untilOrder("forgotten", ({ error }) => error !== null);
  expect(forgotten.error).toContain("no such order");
  await scene.untilIssued();
  expect(directory.orders.length).toBe(2);
});

test("a devlove that cannot be read changes nothing, and is read again", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  const { id } = await scene.untilIssued();
  let reads = 0;
  scene.onRead = () => {
    reads++;
    throw new Error("EIO: i/o error, read");
  };
  await scene.activate({ [domain]: {} });
  await until("read", () => reads === 1);
  // Some turns later it is still ordered, and the disk was left alone.
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect((await scene.orders()).map((order) => order.id)).toEqual([id]);
  expect(reads).toBe(1);
  scene.onRead = () => undefined;
  scene.forward(60_000);
  await until("ordered no more", async () => (await scene.orders()).length === 0);
});

test("a site that is linked later gets it, one that is unlinked loses it, and without tls.acme it is as if uploaded", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  const { certificate } = await scene.untilIssued();
  const other = Number(member(await scene.call("POST", "/deployment-site/", { tags: "" }), "id"));
  await scene.call("PUT", `/domain/${domain}/`, { deployment_site_id: other });
  const sites = async () => (await scene.certificates()).map((one) => one["deployment_site_id"]);
  await until("at both", async () => (await sites()).length === 2);
  expect((await scene.certificates())[1]?.["fingerprint"]).toBe(certificate?.fingerprint);
  await scene.call("DELETE", `/domain/${domain}/deployment-sites/${scene.siteId}/`);
  await until("at one", async () => String(await sites()) === String(other));
  await scene.activate({ [domain]: {} });
  await until("ordered no more", async () => (await scene.orders()).length === 0);
  expect((await scene.certificates()).map((one) => one["acme_order_id"])).toEqual([null]);
});

test("a new sub-domain orders anew; one that is gone waits for the renewal", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  const sub = await scene.addSubDomain("shop");
  await scene.untilOrder("seen", ({ names }) => names.length === 2, { moves: false });
  scene.forward(300_000);
  const both = await scene.untilOrder("both", ({ certificate }) => certificate?.names.length === 2);
  await scene.activate({ ...ordering, [sub]: {} });
  const less = await scene.untilOrder("less", ({ names }) => names.length === 1);
  expect(less.certificate?.fingerprint).toBe(both.certificate?.fingerprint);
  expect(less.state).toBe("issued");
});

test("a sub-domain that comes while the directory is asked for its window is ordered all the same", async () => {
  const { directory } = scene;
  directory.window = { start: "2031-06-01T00:00:00Z", end: "2031-06-03T00:00:00Z" };
  const asked = Promise.withResolvers<void>();
  const mayAnswer = Promise.withResolvers<void>();
  directory.onAsk = async (path) => {
    if (!path.startsWith("/renewal")) return;
    asked.resolve();
    await mayAnswer.promise;
  };
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  await asked.promise;
  scene.forward(1_000);
  await scene.addSubDomain("shop");
  await until("wanted", async () => (await scene.orders())[0]?.names.length === 2);
  mayAnswer.resolve();
  scene.forward(300_000);
  const { certificate } = await scene.untilOrder(
    "both",
    (order) => order.certificate?.names.length === 2,
  );
  const tookMs = Date.parse(certificate?.when_issued ?? "") - scene.beganMs;
  expect(tookMs).toBeLessThan(3_600_000);
});

test("a renewal that is overdue is a warning, until it is done", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  scene.looks = () => ({ kind: "elsewhere", reason: "it answers 404" });
  scene.forward(61 * dayMs);
  await until("warned of the reason", () => {
    scene.forward(10_000);
    return scene.health.list().some(({ text }) => text.includes("404"));
  });
  expect(scene.health.list()).toMatchObject([
    {
      code: "certificate_renewal_failing",
      severity: "warning",
      text: expect.stringContaining(`${domain}: it answers 404`),
    },
  ]);
  scene.looks = () => ({ kind: "there" });
  await scene.untilIssued();
  await until("settled", () => scene.health.list().length === 0);
});

test("a directory that never finishes is a warning and a mail, and the order is placed anew when it expires", async () => {
  const { directory } = scene;
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  await until("delivered", async () => (await scene.certificates()).length === 1);
  directory.lookMs = () => 365 * dayMs;
  scene.forward(61 * dayMs);
  const waiting = await scene.untilOrder("told of", ({ error }) => error !== null);
  expect(waiting).toMatchObject({
    state: "ordering",
    attempts: 0,
    error: "the directory has not finished the order yet",
  });
  await until("warned", () => scene.health.list().length > 0);
  expect(scene.health.list()).toMatchObject([{ code: "certificate_renewal_failing" }]);
  expect(await scene.mailed()).toEqual([[domain]]);
  const asked = directory.asked.length;
  for (let minutes = 0; minutes < 60; minutes++) {
    scene.forward(60_000);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(directory.asked.length - asked).toBeLessThan(50);
  directory.lookMs = () => 0;
  directory.looks = () => "valid";
  scene.forward(7 * dayMs);
  const late = await scene.untilOrder("given up", ({ attempts }) => attempts > 0);
  expect(late.error).toContain("had not finished the order when the order expired");
  await scene.untilIssued();
  expect(directory.orders.length).toBe(3);
});

test("mails about certificates that expire tell of an ordered one only where its renewal fails", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  await until("delivered", async () => (await scene.certificates()).length === 1);
  expect(await scene.mailed()).toEqual([]);
  scene.looks = () => ({ kind: "elsewhere", reason: "it answers 404" });
  scene.forward(61 * dayMs);
  await scene.untilOrder("fails", ({ attempts }) => attempts > 0);
  expect(await scene.mailed()).toEqual([[domain]]);
});

/** Starts central, which is killed before a transaction, by its number. Returns false if it was done before. */
async function diesAt(at: number, isDone: () => Promise<boolean>): Promise<boolean> {
  let isDead = false;
  let seen = 0;
  scene.onChange = () => {
    if (++seen < at && !isDead) return;
    isDead = true;
    throw new Error("killed");
  };
  {
    await using _ = scene.start();
    await until("dead or done", async () => {
      scene.forward(1_000);
      return isDead || (await isDone());
    });
  }
  scene.onChange = () => undefined;
  return isDead;
}

test("a crash before any of its transactions loses no order, and leaves no challenge open", async () => {
  await scene.activate(ordering);
  let crashes = 0;
  for (let at = 1; at <= 40; at++) {
    if (!(await diesAt(at, async () => (await scene.certificates()).length > 0))) break;
    crashes++;
  }
  await using _ = scene.start();
  const { certificate } = await scene.untilIssued();
  await until("delivered", async () => (await scene.certificates()).length === 1);
  expect((await scene.certificates())[0]?.["fingerprint"]).toBe(certificate?.fingerprint);
  expect((await scene.told()).at(-1)).toEqual([]);
  expect(crashes).toBeGreaterThan(3);
});

test("a challenge is answered once, wherever central is killed meanwhile", async () => {
  const { directory } = scene;
  await scene.activate(ordering);
  let before = "";
  {
    await using _ = scene.start();
    before = (await scene.untilIssued()).certificate?.fingerprint ?? "";
  }
  directory.lookMs = () => 8_000;
  const isRenewed = ({ certificate }: CertificateOrder) => certificate?.fingerprint !== before;
  let kills = 0;
  for (let at = 1; at <= 40; at++) {
    directory.saysProcessing = at % 2 === 0;
    scene.forward(61 * dayMs);
    const isDead = await diesAt(at, async () => (await scene.orders()).some(isRenewed));
    await using _ = scene.start();
    const { certificate } = await scene.untilOrder("renewed", isRenewed);
    before = certificate?.fingerprint ?? "";
    for (const [challenge, validations] of directory.validations)
      expect(`${challenge}, killed at ${at}: ${validations}`).toMatch(/: 1$/);
    if (!isDead) break;
    kills++;
  }
  expect(kills).toBeGreaterThan(20);
});

test("a directory that takes long is asked how it stands, and not to look again", async () => {
  const { directory } = scene;
  directory.lookMs = () => 90_000;
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  expect([...directory.validations]).toEqual([["0-0", 1]]);
  const looks = directory.asked.filter((one) => one.includes("/look/"));
  expect(looks).toEqual(["POST /look/0-0"]);
});

test.each(["lost", "unanswered"] as const)(
  "an answer to a challenge that is %s makes one validation",
  async (how) => {
    const { directory } = scene;
    directory.lookMs = () => 20_000;
    directory[how].push("/look/");
    await scene.activate(ordering);
    await using _ = scene.start();
    await scene.untilOrder("put off", ({ error }) => error !== null);
    const putOffMs = scene.api.clock.getTime();
    await scene.untilIssued();
    expect([...directory.validations]).toEqual([["0-0", 1]]);
    const looks = directory.asked.filter((one) => one.includes("/look/"));
    expect(looks.length).toBe(how === "lost" ? 2 : 1);
    const tookMs = scene.api.clock.getTime() - putOffMs;
    if (how === "lost") expect(tookMs).toBeGreaterThanOrEqual(45_000);
  },
);

test("hosts answer for as long as the directory looks, also where the order has failed for another", async () => {
  const sub = await scene.addSubDomain("shop");
  const { directory } = scene;
  let toldAtTheEnd: Promise<readonly (readonly string[])[]> | undefined;
  directory.lookMs = (host) => (host === sub ? 0 : 60_000);
  directory.looks = (host) => {
    if (host === sub) return "invalid";
    toldAtTheEnd = scene.told();
    return "valid";
  };
  await scene.activate(ordering);
  await using _ = scene.start();
  const { error } = await scene.untilOrder("failed", ({ state }) => state === "failed");
  expect(error).toContain(sub);
  expect(await toldAtTheEnd).toEqual([["token-0-0", "token-0-1"]]);
  expect((await scene.told()).at(-1)).toEqual([]);
});
