// Answers of OCSP beside certificates: asked of a real responder in the background, stapled only when they are good, verified and of now, and told of when not.

import { hash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:tls";
import { describe, expect, test } from "vitest";
import { Staples } from "../../../src/agent/accelerator/doors/staples.ts";
import { askResponder } from "../../../src/agent/vault/ask-responder.ts";
import { Stapler } from "../../../src/agent/vault/stapler.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { judgeOcsp, ocspRequest, ocspSubject } from "../../../src/agent/vault/ocsp/ocsp.ts";
import type { Staple } from "../../../src/core/serving/staple.ts";
import { encodeCertificates } from "../../../src/core/serving/certificate-table.ts";
import { OcspResponder } from "../../support/ocsp-responder.ts";
import { makeAuthority, makeCertificate, type CertificateWanted } from "../../support/x509.ts";
import { host } from "../accelerator/edge.ts";
import { installedOf } from "../accelerator/secure-clients.ts";
import { openSecure } from "../accelerator/secure-stage.ts";

const authority = makeAuthority();
const minuteMs = 60_000;
let tables = 0;

type Rig = AsyncDisposable & Awaited<ReturnType<typeof open>>;

async function open(wanted: CertificateWanted = {}, mayBePrivate = true) {
  const responder = await OcspResponder.open(authority.intermediate);
  const leaf = authority.issue({ names: [host], ocspUrl: responder.url, ...wanted });
  responder.knows(leaf, "good");
  const registry = new Registry();
  const health = new Health(() => new Date());
  const told: (readonly Staple[])[] = [];
  const time = { skewMs: 0 };
  const stapler = new Stapler({
    ask: askResponder(mayBePrivate),
    now: () => new Date(Date.now() + time.skewMs),
    random: () => 0,
    onStaples: (staples) => told.push(staples),
    registry,
    health,
    log: silentLog(),
  });
  const certificate = installedOf(leaf, [host]);
  stapler.follow(encodeCertificates(++tables, [certificate]));
  const warnings = (): readonly string[] => health.list().map(({ code }) => code);
  return {
    responder,
    leaf,
    registry,
    time,
    stapler,
    certificate,
    warnings,
    staples: () => told.at(-1) ?? [],
    [Symbol.asyncDispose]: async () => responder[Symbol.asyncDispose](),
  };
}

test("a visitor who asks for it gets the answer with the handshake, and nothing before there is one", async () => {
  await using rig: Rig = await open();
  const { stapler, certificate, registry } = rig;
  await using secure = await openSecure({ certificates: [certificate] });
  const met = async (): Promise<unknown> => {
    const asked = { port: secure.port, servername: host, rejectUnauthorized: false };
    const socket = connect({ ...asked, host: "127.0.0.1", requestOCSP: true });
    const [answer, ready] = [once(socket, "OCSPResponse"), once(socket, "secureConnect")];
    const said: unknown = await answer;
    await ready; // Nobody waits for what is not there.
    socket.destroy();
    return said;
  };
  expect(await met()).toEqual([null]);
  await stapler.look();
  expect(rig.warnings()).toEqual([]);
  const [staple] = rig.staples();
  secure.edge.staples.take(rig.staples());
  expect(await met()).toEqual([Buffer.from(staple?.response ?? [])]);
  expect(await registry.metrics()).toContain('accel_agent_ocsp_staples{state="stapled"} 1');
});

test("it is asked for again when half of its time has passed, and kept while nobody answers", async () => {
  await using rig: Rig = await open();
  const { stapler, responder, time } = rig;
  await stapler.look();
  time.skewMs = 29 * minuteMs;
  await stapler.look();
  expect(responder.asked).toBe(1);
  time.skewMs = 31 * minuteMs;
  responder.instead = { status: 500, body: Buffer.alloc(0) };
  await stapler.look();
  expect([responder.asked, rig.staples().length, rig.warnings()]).toEqual([2, 1, []]);
  time.skewMs = 61 * minuteMs;
  await stapler.look();
  expect([responder.asked, rig.staples().length]).toEqual([3, 0]);
  expect(rig.warnings()).toEqual(["ocsp_absent"]);
  responder.instead = undefined;
  responder.minutes = 180;
  time.skewMs = 70 * minuteMs;
  await stapler.look();
  expect([rig.staples().length, rig.warnings()]).toEqual([1, []]);
});

test("a failure is not repeated at once", async () => {
  await using rig: Rig = await open();
  const { stapler, responder, time } = rig;
  responder.instead = { status: 200, body: randomBytes(500) };
  await stapler.look();
  await stapler.look();
  expect(responder.asked).toBe(1);
  time.skewMs = minuteMs;
  await stapler.look();
  expect(responder.asked).toBe(2);
});

test("what must be stapled and cannot be is told as an error, and what was revoked", async () => {
  await using must: Rig = await open({ isMustStaple: true });
  must.responder.knows(must.leaf, "unknown");
  await must.stapler.look();
  expect(must.warnings()).toEqual(["ocsp_must_staple"]);
  await using revoked: Rig = await open();
  revoked.responder.knows(revoked.leaf, "revoked");
  await revoked.stapler.look();
  expect(revoked.warnings()).toEqual(["certificate_revoked"]);
  expect(revoked.staples()).toEqual([]);
  revoked.stapler.follow(undefined);
  expect(revoked.warnings()).toEqual([]);
});

test("nobody is asked about a certificate that names nobody", async () => {
  await using rig: Rig = await open();
  const silent = authority.issue({ names: [host] });
  rig.stapler.follow(encodeCertificates(++tables, [installedOf(silent, [host])]));
  await rig.stapler.look();
  expect([rig.responder.asked, rig.staples(), rig.warnings()]).toEqual([0, [], []]);
});

describe("asking", () => {
  test("leads to no private address unless it may", async () => {
    await using rig: Rig = await open({}, false);
    await rig.stapler.look();
    expect([rig.responder.asked, rig.warnings()]).toEqual([0, ["ocsp_absent"]]);
    const { port } = new URL(rig.responder.url);
    await expect(askResponder(false)(`http://localhost:${port}/`, Buffer.alloc(1))).rejects.toThrow(
      /is no public address/,
    );
    expect(rig.responder.asked).toBe(0);
  });

  test.each([
    ["a redirect", 302, 0, /the answer is 302/],
    ["too much", 200, 65_537, /more than 65536 bytes/],
  ])("takes %s for no answer", async (_what, status, bytes, said) => {
    await using rig: Rig = await open();
    rig.responder.instead = { status, body: Buffer.alloc(bytes) };
    await expect(askResponder(true)(rig.responder.url, Buffer.alloc(1))).rejects.toThrow(said);
  });
});

describe("an answer", () => {
  const judge = async (
    change: (rig: Rig) => void,
    { skewMs = 0 }: { readonly skewMs?: number } = {},
  ) => {
    await using rig: Rig = await open();
    change(rig);
    const subject = ocspSubject(rig.certificate.chain);
    if (subject === undefined) throw new Error("nobody is named");
    const answer = rig.responder.answer(ocspRequest(subject));
    return { subject, answer, judged: judgeOcsp(subject, answer, Date.now() + skewMs) };
  };
  const delegate = (wanted: CertificateWanted) =>
    makeCertificate({ subject: "Delegate", issuer: authority.intermediate, ...wanted });
  const ocspSigning = "1.3.6.1.5.5.7.3.9";

  test.each([
    ["by the issuer", () => {}, {}, "good"],
    [
      "by a delegate",
      (rig: Rig) => rig.responder.signsAs(delegate({ usages: [ocspSigning] })),
      {},
      "good",
    ],
    [
      "by a delegate with RSA",
      (rig: Rig) => rig.responder.signsAs(delegate({ usages: [ocspSigning], keyType: "rsa" })),
      {},
      "good",
    ],
    [
      "by whom the issuer has not named",
      (rig: Rig) => rig.responder.signsAs(delegate({})),
      {},
      "is not signed by the issuer or for it",
    ],
    [
      "by a delegate whose time is over",
      (rig: Rig) =>
        rig.responder.signsAs(
          delegate({ usages: [ocspSigning], to: new Date("2021-01-01T00:00:00Z") }),
        ),
      {},
      "is not signed by the issuer or for it",
    ],
    [
      "by a stranger",
      (rig: Rig) => rig.responder.signsAs(makeCertificate({ usages: [ocspSigning] })),
      {},
      "is not signed by the issuer or for it",
    ],
    ["that is out of date", () => {}, { skewMs: 61 * minuteMs }, "is out of date"],
    ["that is of the future", () => {}, { skewMs: -6 * minuteMs }, "is of the future"],
    [
      "that does not know it",
      (rig: Rig) => rig.responder.knows(rig.leaf, "unknown"),
      {},
      "does not know the certificate",
    ],
  ] as const)("%s", async (_what, change, options, said) => {
    const { judged } = await judge(change, options);
    expect(judged.kind === "unusable" ? judged.reason : judged.kind).toBe(said);
  });

  test("about another certificate is not taken", async () => {
    const [one, other] = [await judge(() => {}), await judge(() => {})];
    const judged = judgeOcsp(one.subject, other.answer, Date.now());
    expect(judged).toEqual({ kind: "unusable", reason: "is about another certificate" });
  });

  test("that is cut or longer is not taken, and no byte of what was signed can be another one", async () => {
    const { subject, answer } = await judge(() => {});
    const kind = (bytes: Uint8Array): string => judgeOcsp(subject, bytes, Date.now()).kind;
    for (let length = 0; length < answer.length; length++)
      expect(kind(answer.subarray(0, length))).toBe("unusable");
    expect(kind(Buffer.concat([answer, Buffer.of(0)]))).toBe("unusable");
    // Its first half: what was signed begins within the first 50 bytes, and the signer's certificate is behind the signature.
    const changed = Array.from({ length: 150 }, (_, at) => {
      const bytes = Buffer.from(answer);
      bytes[at] = (bytes[at] ?? 0) ^ 0x01;
      return kind(bytes);
    });
    expect(changed.filter((one) => one === "good").length).toBe(0);
  });
});

test("a worker sends no answer whose time is over", () => {
  let nowMs = 1_000;
  const staples = new Staples(() => nowMs);
  const leaf = Buffer.from("a certificate");
  const response = Buffer.from("an answer");
  expect(staples.find(leaf)).toBeNull();
  staples.take([{ fingerprint: hash("sha256", leaf), response, untilMs: 2_000 }]);
  expect(staples.find(leaf)).toEqual(response);
  expect(staples.find(Buffer.from("another"))).toBeNull();
  nowMs = 2_000;
  expect(staples.find(leaf)).toBeNull();
});
