// Certificates that a devlove orders, with the real programs and a real directory: from the order to the handshake at every agent,
// what is said where it cannot be, and that nothing is lost when central or the directory dies.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runAcmeKills } from "../support/acme-kill.ts";
import { runRenewals } from "../support/acme-renewals.ts";
import { AcmeRig } from "../support/acme-rig.ts";
import { isPebbleMissing, pebbleHint } from "../support/pebble.ts";
import { until } from "../support/until.ts";

describe.skipIf(isPebbleMissing)(`certificates that a devlove orders (${pebbleHint})`, () => {
  let rig: AcmeRig;
  beforeAll(async () => {
    rig = await AcmeRig.start({ agents: 3, noncesRefused: 30, blocked: ["blocked.example.com"] });
  });
  afterAll(async () => rig[Symbol.asyncDispose]());

  test("an order is served by every agent, though the site redirects to HTTPS and shuts everybody out", async () => {
    await rig.addDomain("www.example.com", ["shop.www.example.com"]);
    await rig.edge.api.put("/bot-access-policy/", { unknown_bots_can_access: false });
    await rig.orderFor("www.example.com", {
      redirects: [{ from: "/**", to: "https://elsewhere.example.com/", status: 301 }],
      tls: { redirect_http: true },
    });
    const { certificate, error } = await rig.untilIssued("www.example.com");
    expect(error).toBeNull();
    expect(certificate?.names).toEqual(["shop.www.example.com", "www.example.com"]);
    for (const host of ["www.example.com", "shop.www.example.com"])
      await rig.untilServed(host, certificate?.fingerprint ?? "");
    // It is served a moment before its receipt has come.
    const listed = await until("it is proved", async () => {
      const { body } = await rig.edge.api.get(`/upload/certificates/${rig.site.name16}/`);
      return JSON.stringify(body).includes('"applied"') && body;
    });
    expect(listed).toMatchObject([
      { names: certificate?.names, order_id: expect.any(Number), state: "applied" },
    ]);
  });

  test("a host that leads elsewhere costs no attempt: the order says where, and goes on when it leads here", async () => {
    await rig.addDomain("away.example.com");
    await rig.pebble.leads("away.example.com", "127.0.1.1", "127.0.1.99");
    await rig.orderFor("away.example.com");
    const waiting = await rig.untilOrder(
      "away.example.com",
      "waits",
      ({ error }) => error?.includes("away.example.com") === true,
    );
    expect(waiting).toMatchObject({ state: "proving", certificate: null });
    expect(waiting.error).toContain("away.example.com at 127.0.1.99");
    expect(rig.pebble.said).not.toContain(
      "Attempting to validate w/ HTTP: http://away.example.com",
    );
    await rig.leads("away.example.com");
    const { certificate } = await rig.untilIssued("away.example.com");
    await rig.untilServed("away.example.com", certificate?.fingerprint ?? "");
  });

  test("what the directory says is told, and another try comes later", async () => {
    await rig.addDomain("blocked.example.com");
    await rig.orderFor("blocked.example.com");
    const failed = await rig.untilOrder(
      "blocked.example.com",
      "failed",
      ({ state }) => state === "failed",
    );
    expect(failed.error).toMatch(/blocked\.example\.com.*\(rejectedIdentifier\)/);
    expect(Date.parse(failed.next_at) - Date.now()).toBeGreaterThan(5 * 60_000);
  });

  test("an agent that comes later, and a directory that forgot everything, are no end", async () => {
    await rig.pebble.stopDirectory();
    await rig.addDomain("later.example.com");
    await rig.orderFor("later.example.com");
    const { error } = await rig.untilOrder(
      "later.example.com",
      "put off",
      (one) => one.error !== null,
    );
    expect(error).toMatch(/^the directory 127\.0\.0\.1:\d+ cannot be reached: .*ECONNREFUSED/);
    await rig.pebble.startDirectory();
    const { certificate } = await rig.untilIssued("later.example.com");
    await rig.startAgent(4);
    await rig.untilServed("later.example.com", certificate?.fingerprint ?? "");
  });

  test("kill -9 of central in the middle loses no order", async () => {
    const run = await runAcmeKills(rig, 3);
    expect(run.lost).toEqual([]);
  });
});

describe.skipIf(isPebbleMissing)(`other directories (${pebbleHint})`, () => {
  test("renewals under load fail no handshake", async () => {
    await using rig = await AcmeRig.start({ agents: 2, validityS: 45 });
    const options = { domains: 2, renewals: 3, visitors: 4, withinMs: 180_000 };
    const run = await runRenewals(rig, options);
    expect(run.failed).toEqual([]);
    expect(run.renewals).toBeGreaterThanOrEqual(3);
  });

  test("one that takes its own customers only is told in words", async () => {
    await using rig = await AcmeRig.start({ agents: 1, needsExternalAccounts: true });
    await rig.addDomain("www.example.com");
    await rig.orderFor("www.example.com");
    const { error } = await rig.untilOrder(
      "www.example.com",
      "failed",
      (one) => one.error !== null,
    );
    expect(error).toContain("external account binding");
    expect(error).toContain("upload the certificate");
  });

  test("one that sees something else says so, and nothing of it is served", async () => {
    await using rig = await AcmeRig.start({ agents: 1, looksElsewhere: true });
    await rig.addDomain("www.example.com");
    await rig.orderFor("www.example.com");
    const { error, certificate } = await rig.untilOrder(
      "www.example.com",
      "failed",
      ({ state }) => state === "failed",
    );
    expect(error).toMatch(/^www\.example\.com: the directory says: .*\(connection\)$/);
    expect(certificate).toBeNull();
  });
});
