// Recovery and unsubscribing with central whole, a real mail server, and a reader who follows the links.

import { join } from "node:path";
import { openSqlite } from "../../src/base/sqlite.ts";
import { expect, test } from "vitest";
import { call, settingsOf, start } from "../support/central-whole.ts";
import { startMailServer, type MailServer } from "../support/mail-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

function mailSettings(port: number): string {
  return `mail:\n  server: smtp://127.0.0.1:${port}\n  starttls: never\n  from: Accel <accel@c.example>\n`;
}

async function open() {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir());
  const mails = stack.use(await startMailServer());
  const central = stack.use(await start(settingsOf(dir.path, mailSettings(mails.port))));
  const held = stack.move();
  return {
    dir: dir.path,
    mails,
    url: central.url,
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  };
}

/** The link of the last mail, on this central's own port. */
function linkIn(mails: MailServer, url: string): string {
  const text = mails.received.at(-1)?.mail.text ?? "";
  const link = /http:\/\/127\.0\.0\.1:8000(\/mail\/\S+)/.exec(text)?.[1];
  if (link === undefined) throw new Error(`no link in ${text}`);
  return url + link;
}

async function post(link: string, fields: Record<string, string> = {}): Promise<Response> {
  const [address = "", search] = link.split("?");
  const token = new URLSearchParams(search).get("token") ?? "";
  return fetch(address, { method: "POST", body: new URLSearchParams({ token, ...fields }) });
}

async function isKnown(url: string, token: string): Promise<boolean> {
  const headers = { authorization: `Token ${token}` };
  return (await fetch(`${url}/presentation-api/v1/customer/`, { headers })).status === 200;
}

test("a lost token is found again: link, page, form; once, and the tokens before are void", async () => {
  await using rig = await open();
  const { url, mails } = rig;
  const user = { username: "ada", email: "Ada@example.com" };
  const first = String((await call(url, "POST", "/trial/", undefined, user))["token"]);
  const ask = async (email: string, username = "ada") =>
    call(url, "POST", "/tokens/start-recovery/", undefined, { username, email });
  // Not hers, nobody's, then hers in another spelling.
  await ask("eve@example.com");
  await ask("ada@example.com", "nobody");
  await ask("ada@EXAMPLE.com");
  await mails.waitFor(1);
  const [mail] = mails.received;
  expect(mail?.to).toEqual(["Ada@example.com"]);
  expect(mail?.mail.subject).toBe("A new token for ada");
  expect(mail?.raw).not.toContain("List-Unsubscribe");
  const link = linkIn(mails, url);

  for (let i = 0; i < 3; i++) {
    const page = await fetch(link);
    expect(page.status).toBe(200);
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
    expect(page.headers.get("cache-control")).toBe("no-store");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(await page.text()).not.toMatch(/<script|<link|<img|https?:\/\//);
  }
  expect(await isKnown(url, first)).toBe(true);

  const [one, two] = await Promise.all([post(link), post(link)]);
  expect(new Set([one.status, two.status])).toEqual(new Set([200, 404]));
  const text = await (one.status === 200 ? one : two).text();
  const token = /<code>([\w-]{40,})<\/code>/.exec(text)?.[1] ?? "";
  expect(await isKnown(url, token)).toBe(true);
  expect(await isKnown(url, first)).toBe(false);
  expect((await fetch(link)).status).toBe(404);
  expect((await post(link)).status).toBe(404);
  expect(mails.received.length).toBe(1);

  const lines = openSqlite(join(rig.dir, "central.db"), { sync: "full", readonly: true });
  const stored = JSON.stringify(
    ["outbox", "recoveries", "audit", "tokens"].map((table) =>
      lines.prepare(`SELECT * FROM ${table}`).all(),
    ),
  );
  lines.close();
  expect(stored).toContain("LINK recover token");
  for (const secret of [token, new URL(link).searchParams.get("token") ?? "?"])
    expect(stored).not.toContain(secret);
});

test("a mailbox is not filled: five mails an hour, whoever asks", async () => {
  await using rig = await open();
  const user = { username: "ada", email: "ada@example.com" };
  await call(rig.url, "POST", "/trial/", undefined, user);
  for (let i = 0; i < 9; i++)
    await call(rig.url, "POST", "/tokens/start-recovery/", undefined, user);
  const db = openSqlite(join(rig.dir, "central.db"), { sync: "full", readonly: true });
  const count = (table: string): unknown =>
    db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
  await until("all looked at", () => count("recovery_requests") === 0);
  expect(count("outbox")).toBe(5);
  db.close();
  await rig.mails.waitFor(5);
});

test("pages refuse what is no link, and what is no such request", async () => {
  await using rig = await open();
  const at = async (path: string, init?: RequestInit) => (await fetch(rig.url + path, init)).status;
  expect(await at("/mail/recover")).toBe(404);
  expect(await at("/mail/recover?token=../../etc")).toBe(404);
  expect(await at(`/mail/recover?token=${"a".repeat(43)}`)).toBe(404);
  expect(await at(`/mail/unsubscribe?token=${"a".repeat(43)}`)).toBe(404);
  expect(await at("/mail/else")).toBe(404);
  expect(await at("/mail/recover", { method: "DELETE" })).toBe(405);
  expect(await at("/mail/recover", { method: "POST", body: "a".repeat(20_000) })).toBe(413);
});
