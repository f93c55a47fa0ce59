// The exchange of a code from the host's side: what is sent, what is asked again, and which authority is believed.

import type { RequestListener } from "node:http";
import { describe, expect, test } from "vitest";
import { enrolHost, fetchAuthority, newNonce } from "../../../src/agent/link/enrol.ts";
import { listenHttp } from "../../../src/base/http-listener.ts";
import { authorityDigestOf } from "../../../src/wire/enrolment.ts";

const never = new AbortController().signal;
const listen = async (handler: RequestListener) =>
  listenHttp(handler, { host: "127.0.0.1", port: 0 }, { graceMs: 20 });
const code = "0123456789abcdef".repeat(2);
const given = { name16: "0".repeat(16), secret16: "1".repeat(32), deployment_site_id: 1 };

/** Exchanges with a central that gives these answers, the last of them for ever; returns what came of it and what was asked. */
async function exchange(...answers: readonly (readonly [number, object])[]) {
  const asked: { readonly date: string | undefined; readonly nonce: unknown }[] = [];
  await using central = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { nonce } = Object(JSON.parse(Buffer.concat(chunks).toString())) as { nonce: unknown };
      const [status, body] = answers[Math.min(asked.length, answers.length - 1)] ?? [500, {}];
      asked.push({ date: request.headers.date, nonce });
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    });
  });
  const centralUrl = `http://127.0.0.1:${central.port}`;
  const outcome = await enrolHost({
    centralUrl,
    code,
    nonce: newNonce(),
    caPem: undefined,
    signal: never,
  }).catch((error: unknown) => error);
  return { outcome, asked };
}

describe("the exchange", () => {
  test("tells the host's time, by which central judges its clock", async () => {
    const { outcome, asked } = await exchange([200, given]);
    expect([outcome, asked.length]).toEqual([given, 1]);
    expect(Math.abs(Date.parse(asked[0]?.date ?? "") - Date.now())).toBeLessThan(60_000);
  });

  test("is asked again with its nonce while central is away", async () => {
    const away = { code: "unavailable", message: "it starts" };
    const { outcome, asked } = await exchange([503, away], [200, given]);
    expect([outcome, asked.length]).toEqual([given, 2]);
    expect(asked[0]?.nonce).toBe(asked[1]?.nonce);
  });

  test.each([
    [403, { code: "code_refused", message: "this code was revoked" }, "CODE_REFUSED"],
    [429, { code: "too_many", message: "too many attempts" }, "CENTRAL_REFUSED"],
    [401, { code: "clock_skew", message: "the clocks differ" }, "CLOCK_SKEWED"],
    [302, {}, "CENTRAL_REFUSED"],
    [200, { ...given, secret16: "short" }, "MESSAGE_INVALID"],
  ])("is over with %i %j", async (status, body, fault) => {
    const { outcome, asked } = await exchange([status, body]);
    expect([outcome, asked.length]).toMatchObject([{ code: fault }, 1]);
  });
});

describe("an authority", () => {
  const pem = "an authority\n";
  const digest = authorityDigestOf(pem);
  const fetched = async (status: number, text: string, of = digest): Promise<unknown> => {
    await using central = await listen((_, response) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(text);
    });
    const url = `http://127.0.0.1:${central.port}/`;
    const outcome = await fetchAuthority(url, of, never).catch((error: unknown) => error);
    return outcome; // Awaited: the server ends with this block.
  };

  test("is believed byte by byte by all of its digest", async () => {
    const answer = JSON.stringify({ ca_pem: pem });
    expect(await fetched(200, answer)).toBe(pem);
    expect(await fetched(200, JSON.stringify({ ca_pem: `${pem}\n` }))).toMatchObject({
      code: "CODE_REFUSED",
    });
    for (let at = 0; at < digest.length; at++) {
      const other = digest.at(at) === "0" ? "1" : "0";
      const damaged = `${digest.slice(0, at)}${other}${digest.slice(at + 1)}`;
      expect(await fetched(200, answer, damaged)).toMatchObject({ code: "CODE_REFUSED" });
    }
  });

  test.each([
    [404, '{"code":"not_found","message":"none"}', "CODE_REFUSED"],
    [404, "<html>", "CENTRAL_REFUSED"],
    [302, JSON.stringify({ ca_pem: pem }), "CENTRAL_REFUSED"],
    [502, "<html>502 Bad Gateway", "CENTRAL_UNREACHABLE"],
    [503, '{"code":"unavailable","message":"it starts"}', "CENTRAL_UNREACHABLE"],
    [200, "<html>", "MESSAGE_INVALID"],
    [200, JSON.stringify({ ca_pem: "x".repeat(2 ** 20) }), "MESSAGE_INVALID"],
  ])("is not taken from %i", async (status, text, fault) => {
    expect(await fetched(status, text)).toMatchObject({ code: fault });
  });
});
