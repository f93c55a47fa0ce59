// An account that somebody else got hold of is shut out: by revoking its tokens, by its address, by a lock; and the trail says from where it was taken.

import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callControl } from "../../src/base/control-socket.ts";
import { startMailServer, type MailServer } from "../support/mail-server.ts";
import { call, settingsOf, start } from "../support/central-whole.ts";
import { tempDir } from "../support/temp-dir.ts";

const user = { username: "ada", email: "ada@example.com" };
let stack: AsyncDisposableStack;
let mails: MailServer;
let [url, dir, token] = ["", "", ""];
beforeEach(async () => {
  stack = new AsyncDisposableStack();
  dir = stack.use(tempDir()).path;
  mails = stack.use(await startMailServer());
  const mail = `mail:\n  server: smtp://127.0.0.1:${mails.port}\n  starttls: never\n  from: Accel <accel@c.example>\n`;
  ({ url } = stack.use(await start(settingsOf(dir, `trusted_proxies: [127.0.0.1]\n${mail}`))));
  token = String((await call(url, "POST", "/trial/", undefined, user))["token"]);
});
afterEach(async () => stack.disposeAsync());

type Line = Readonly<Record<string, unknown>>;
async function operate(command: string, asked: object): Promise<readonly Line[]> {
  const lines: Line[] = [];
  const path = join(dir, "control.sock");
  for await (const line of callControl(path, command, asked, AbortSignal.timeout(10_000)))
    lines.push(Object(line));
  return lines;
}
const by = { operator: "root", username: "ada" };

async function isKnown(one: string): Promise<boolean> {
  const headers = { authorization: `Token ${one}` };
  return (await fetch(`${url}/presentation-api/v1/customer/`, { headers })).status === 200;
}

/** The token of the link in the next mail. */
async function linkSent(email = user.email): Promise<string> {
  const count = mails.received.length;
  await call(url, "POST", "/tokens/start-recovery/", undefined, { ...user, email });
  await mails.waitFor(count + 1);
  const text = mails.received.at(-1)?.mail.text ?? "";
  return /\/mail\/recover\?token=([\w-]+)/.exec(text)?.[1] ?? "";
}

async function use(link: string): Promise<Response> {
  return fetch(`${url}/mail/recover`, {
    method: "POST",
    headers: { "x-forwarded-for": "203.0.113.9" },
    body: new URLSearchParams({ token: link }),
  });
}

describe("links to a new token are void", () => {
  test("once the user's tokens are revoked", async () => {
    const link = await linkSent();
    const [done] = await operate("token-revoke", by);
    expect(done).toMatchObject({ revoked: [{ username: "ada" }], recovery_links: 1 });
    expect((await use(link)).status).toBe(404);
  });

  test("once one of its tokens is revoked by number, and where it has none any more", async () => {
    const first = await linkSent();
    await operate("token-revoke", { operator: "root", token_id: 1 });
    expect((await use(first)).status).toBe(404);
    const second = await linkSent();
    expect(await operate("token-revoke", by)).toMatchObject([{ revoked: [], recovery_links: 1 }]);
    expect((await use(second)).status).toBe(404);
    await expect(operate("token-revoke", by)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("once the user's address is another, by the user or by the operator; not by the same", async () => {
    const first = await linkSent();
    await call(url, "PUT", "/user-profile/1/", token, { email: user.email, first_name: "Ada" });
    expect((await fetch(`${url}/mail/recover?token=${first}`)).status).toBe(200);
    await call(url, "PUT", "/user-profile/1/", token, { email: "thief@example.org" });
    expect((await use(first)).status).toBe(404);
    const stolen = await linkSent("thief@example.org");
    const [shown] = await operate("user-email", { ...by, email: user.email });
    expect(shown).toMatchObject({ username: "ada", email: user.email });
    expect((await use(stolen)).status).toBe(404);
    expect((await use(await linkSent())).status).toBe(200);
  });
});

test("nothing of a locked user is good, and it gets no link, until it is unlocked", async () => {
  const link = await linkSent();
  expect(await operate("user-lock", { ...by, locked: true })).toMatchObject([
    { when_locked: expect.any(String) },
  ]);
  expect(await isKnown(token)).toBe(false);
  expect((await use(link)).status).toBe(404);
  const count = mails.received.length;
  await call(url, "POST", "/tokens/start-recovery/", undefined, user);
  // Requests are looked at in order: once this other one's mail is there, that of the locked user was looked at.
  const other = { username: "bob", email: "bob@example.com" };
  await call(url, "POST", "/trial/", undefined, other);
  await call(url, "POST", "/tokens/start-recovery/", undefined, other);
  await mails.waitFor(count + 1);
  expect(mails.received.slice(count).map(({ to }) => to)).toEqual([[other.email]]);
  expect(await operate("user-lock", { ...by, locked: false })).toMatchObject([
    { when_locked: null },
  ]);
  expect(await isKnown(token)).toBe(true);
  expect((await use(link)).status).toBe(404);
});

test("who shares a mailbox has recoveries of its own", async () => {
  const evil = { username: "evil", email: user.email };
  await call(url, "POST", "/trial/", undefined, evil);
  for (let n = 0; n < 7; n++) await call(url, "POST", "/tokens/start-recovery/", undefined, evil);
  await mails.waitFor(5);
  expect(await linkSent()).not.toBe("");
  const subjects = mails.received.map(({ mail }) => mail.subject);
  expect(subjects.filter((subject) => subject === "A new token for evil")).toHaveLength(5);
  expect(subjects.at(-1)).toBe("A new token for ada");
});

test("the trail says from where and by which request a token was recovered, and who locked", async () => {
  const done = await use(await linkSent());
  await operate("user-lock", { ...by, locked: true });
  await operate("user-lock", { ...by, locked: false });
  await operate("user-email", { ...by, email: "new@example.com" });
  const lines = await operate("audit", {});
  expect(lines.find(({ action }) => action === "LINK recover token")).toMatchObject({
    address: "203.0.113.9",
    request_id: done.headers.get("x-request-id"),
  });
  expect(lines.filter(({ who }) => who === "root")).toMatchObject([
    { action: "user lock", change: { username: "ada" } },
    { action: "user unlock", change: { username: "ada" } },
    { action: "user email", change: { email: "new@example.com", email_before: user.email } },
  ]);
});
