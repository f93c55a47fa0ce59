// Posting to a real chat hook: what arrives, what each answer counts as, and where a hook must not lead.

import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { createHookDelivery, type HookSettings } from "../../../src/central/mail/hook.ts";
import type { ResolveName } from "../../../src/base/judged-lookup.ts";
import { startChatHook } from "../../support/chat-hook.ts";
import { freePorts } from "../../support/free-ports.ts";

const facts = { uid: "0123abcd", whenCreated: "2031-05-06T07:08:09.010Z" };
const never = new AbortController().signal;
const open = { mayBePrivate: true, timeoutMs: 30_000 };

async function post(hookUrl: string, settings: HookSettings = open) {
  return createHookDelivery(settings)({ channel: "chat", hookUrl, text: "hé <b>" }, facts, never);
}

test("one line as JSON, with the id as key", async () => {
  await using hook = await startChatHook();
  expect(await post(`${hook.url}?a=b`)).toEqual({ kind: "sent" });
  expect(hook.posted).toMatchObject([
    {
      path: "/hook?a=b",
      body: { text: "hé <b>" },
      headers: { "idempotency-key": "0123abcd", "content-type": "application/json" },
    },
  ]);
});

const answer =
  (status: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(status, headers).end();
  };

test.each([
  [204, {}, { kind: "sent" }],
  [404, {}, { kind: "refused" }],
  [400, {}, { kind: "refused" }],
  [500, {}, { kind: "later" }],
  [503, { "retry-after": "120" }, { kind: "later", waitMs: 120_000 }],
  [429, { "retry-after": "999999999" }, { kind: "later", waitMs: 3_600_000 }],
  [408, {}, { kind: "later" }],
])("the hook answers %i %j", async (status, headers, expected) => {
  await using hook = await startChatHook();
  hook.answers.push(answer(status, headers));
  expect(await post(hook.url)).toMatchObject(expected);
});

test("redirects are not followed", async () => {
  await using target = await startChatHook();
  await using hook = await startChatHook();
  hook.answers.push(answer(307, { location: target.url }));
  expect(await post(hook.url)).toMatchObject({ kind: "refused" });
  expect(target.posted).toEqual([]);
});

test("a hook that takes forever, and one that is not there, are asked again later", async () => {
  await using hook = await startChatHook();
  hook.answers.push(() => {});
  expect(await post(hook.url, { ...open, timeoutMs: 100 })).toMatchObject({
    kind: "later",
    reason: "the hook does not answer in time",
  });
  const [port = 0] = await freePorts(1);
  expect(await post(`http://127.0.0.1:${port}/`)).toMatchObject({ kind: "later" });
});

test("an answer without end is cut, not kept", async () => {
  await using hook = await startChatHook();
  const closed = Promise.withResolvers<void>();
  hook.answers.push((response) => {
    response.on("close", () => closed.resolve());
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
    };
    response.on("drain", more);
    more();
  });
  expect(await post(hook.url)).toEqual({ kind: "sent" });
  await closed.promise;
});

function resolvesTo(...addresses: readonly string[]): ResolveName {
  return (_name, _options, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
}

test.each([
  ["127.0.0.1"],
  ["10.0.0.1"],
  ["169.254.169.254"],
  ["::1"],
  ["::ffff:127.0.0.1"],
  ["93.184.216.34", "127.0.0.1"],
])("a name that resolves to %s is not connected to", async (...addresses) => {
  await using hook = await startChatHook();
  const settings = { mayBePrivate: false, timeoutMs: 30_000, resolve: resolvesTo(...addresses) };
  const delivery = await post(`http://hooks.example:${hook.port}/x`, settings);
  expect(delivery).toMatchObject({ kind: "later", reason: expect.stringContaining("private") });
  expect(hook.posted).toEqual([]);
});

test("a literal address is judged too, whatever was allowed when it was stored", async () => {
  await using hook = await startChatHook();
  const closed = { mayBePrivate: false, timeoutMs: 30_000 };
  expect(await post(hook.url, closed)).toMatchObject({ kind: "refused" });
  expect(hook.posted).toEqual([]);
});

test("what was judged is what is connected to: the name is asked once", async () => {
  await using hook = await startChatHook();
  let asked = 0;
  const resolve: ResolveName = (name, options, callback) => {
    asked++;
    // A second question would be answered with another address.
    resolvesTo(asked === 1 ? "127.0.0.1" : "203.0.113.1")(name, options, callback);
  };
  expect(await post(`http://hooks.example:${hook.port}/x`, { ...open, resolve })).toEqual({
    kind: "sent",
  });
  expect(asked).toBe(1);
});
