// Handing mails to a real SMTP server: what arrives, and what each way of failing counts as.

import { expect, test } from "vitest";
import type { SMTPServerOptions } from "smtp-server";
import { createSmtpDelivery, type SmtpSettings } from "../../../src/central/mail/smtp.ts";
import { freePorts } from "../../support/free-ports.ts";
import { smtpError, startMailServer } from "../../support/mail-server.ts";

const mail = {
  channel: "mail",
  to: "ada@example.com",
  subject: "Grüße, a “subject”",
  text: "plain\n.\nnot the end",
  html: "<p>html</p>",
  unsubscribeUrl: "https://central.example/mail/unsubscribe?token=abc",
} as const;
const facts = { uid: "0123abcd", whenCreated: "2031-05-06T07:08:09.010Z" };
const never = new AbortController().signal;

function settings(port: number, more: Partial<SmtpSettings> = {}): SmtpSettings {
  return {
    host: "127.0.0.1",
    port,
    tls: "offered",
    user: undefined,
    password: undefined,
    from: "Accel <accel@central.example>",
    timeoutMs: 30_000,
    idHost: "central.example",
    ...more,
  };
}

test("what arrives is what was written, with the id of the outbox", async () => {
  await using server = await startMailServer();
  const deliver = createSmtpDelivery(settings(server.port));
  expect(await deliver(mail, facts, never)).toEqual({ kind: "sent" });
  const [got] = server.received;
  if (got === undefined) throw new Error("nothing arrived");
  expect(got.to).toEqual(["ada@example.com"]);
  expect(got.mail).toMatchObject({
    subject: mail.subject,
    messageId: "<0123abcd@central.example>",
    from: { name: "Accel", address: "accel@central.example" },
    date: "2031-05-06T07:08:09.000Z",
  });
  expect(got.mail.text?.trim()).toBe(mail.text);
  expect(got.mail.html?.trim()).toBe(mail.html);
  expect(server.header(got, "List-Unsubscribe")).toBe(`<${mail.unsubscribeUrl}>`);
  expect(server.header(got, "List-Unsubscribe-Post")).toBe("List-Unsubscribe=One-Click");
  expect(server.header(got, "Auto-Submitted")).toBe("auto-generated");
});

test("a mail that was asked for by hand has nothing to unsubscribe from", async () => {
  await using server = await startMailServer();
  await createSmtpDelivery(settings(server.port))({ ...mail, unsubscribeUrl: null }, facts, never);
  const [got] = server.received;
  expect(got?.raw).not.toContain("List-Unsubscribe");
});

test.each([
  [550, "refused"],
  [554, "refused"],
  [450, "later"],
  [421, "down"],
])("the recipient is answered %i: %s", async (code, kind) => {
  await using server = await startMailServer();
  server.recipientAnswers.push(smtpError(code, "not this one"));
  const delivery = await createSmtpDelivery(settings(server.port))(mail, facts, never);
  expect(delivery).toMatchObject({ kind, reason: expect.stringContaining("not this one") });
  expect(server.received).toEqual([]);
});

test.each([
  [552, "refused"],
  [451, "later"],
])("the message is answered %i: %s", async (code, kind) => {
  await using server = await startMailServer();
  server.dataAnswers.push(smtpError(code, "too much"));
  const delivery = await createSmtpDelivery(settings(server.port))(mail, facts, never);
  expect(delivery).toMatchObject({ kind, reason: expect.stringContaining("too much") });
});

const refuseSender: SMTPServerOptions["onMailFrom"] = (_from, _session, callback) =>
  callback(smtpError(550, "not from you"));
const refuseLogin: SMTPServerOptions["onAuth"] = (_auth, _session, callback) =>
  callback(smtpError(535, "wrong password"));

test("what is about us and not about this mail keeps all mails waiting", async () => {
  {
    await using server = await startMailServer({ onMailFrom: refuseSender });
    const deliver = createSmtpDelivery(settings(server.port));
    expect((await deliver(mail, facts, never)).kind).toBe("down");
  }
  {
    await using server = await startMailServer({
      disabledCommands: ["STARTTLS"],
      allowInsecureAuth: true,
      onAuth: refuseLogin,
    });
    const deliver = createSmtpDelivery(settings(server.port, { user: "u", password: "secret-pw" }));
    const delivery = await deliver(mail, facts, never);
    expect(delivery).toMatchObject({ kind: "down", reason: expect.stringContaining("wrong") });
    expect(JSON.stringify(delivery)).not.toContain("secret-pw");
  }
  {
    // STARTTLS is required and not offered: nothing goes in clear.
    await using server = await startMailServer();
    const deliver = createSmtpDelivery(settings(server.port, { tls: "required" }));
    expect((await deliver(mail, facts, never)).kind).toBe("down");
    expect(server.received).toEqual([]);
  }
  const [port = 0] = await freePorts(1);
  const deliver = createSmtpDelivery(settings(port));
  expect((await deliver(mail, facts, never)).kind).toBe("down");
});

test("a server that hangs up is there or is not: told apart", async () => {
  for (const isThere of [true, false]) {
    // The recipient is where it ends; whether the next connection is greeted says whose fault that is.
    const connections: string[] = [];
    await using server = await startMailServer({
      onConnect: (session, callback) => {
        connections.push(session.id);
        callback(isThere || connections.length === 1 ? null : smtpError(421, "closing"));
      },
      onRcptTo: (_address, _session, callback) => callback(smtpError(421, "goodbye")),
    });
    const delivery = await createSmtpDelivery(settings(server.port))(mail, facts, never);
    expect(delivery).toMatchObject({ kind: "down", reason: expect.stringContaining("goodbye") });
    expect("hungUp" in delivery).toBe(isThere);
    expect(connections.length).toBe(2);
  }
  // What it answers about us says that it is the same for all.
  await using server = await startMailServer({ onMailFrom: refuseSender });
  expect(await createSmtpDelivery(settings(server.port))(mail, facts, never)).not.toHaveProperty(
    "hungUp",
  );
});

test("a server that takes forever is left at the deadline; what it took may come once more", async () => {
  await using server = await startMailServer();
  const held = Promise.withResolvers<void>();
  server.afterData = async () => held.promise;
  const deliver = createSmtpDelivery(settings(server.port));
  const cut = new AbortController();
  const delivering = deliver(mail, facts, cut.signal);
  await server.waitFor(1);
  cut.abort();
  expect((await delivering).kind).toBe("down");
  held.resolve();
});

test("a server whose certificate nobody vouches for gets nothing, by STARTTLS or from the first byte", async () => {
  {
    await using server = await startMailServer({ disabledCommands: ["AUTH"] });
    const deliver = createSmtpDelivery(settings(server.port, { tls: "required" }));
    expect((await deliver(mail, facts, never)).kind).toBe("down");
    expect(server.received).toEqual([]);
  }
  await using server = await startMailServer({ secure: true, disabledCommands: ["AUTH"] });
  const deliver = createSmtpDelivery(settings(server.port, { tls: "implicit" }));
  expect((await deliver(mail, facts, never)).kind).toBe("down");
  expect(server.received).toEqual([]);
});

test("name and password of the settings are what the server is told", async () => {
  const told: unknown[] = [];
  await using server = await startMailServer({
    disabledCommands: ["STARTTLS"],
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, callback) => {
      told.push([username, password]);
      callback(null, { user: username });
    },
  });
  const deliver = createSmtpDelivery(settings(server.port, { user: "u", password: "secret-pw" }));
  expect(await deliver(mail, facts, never)).toEqual({ kind: "sent" });
  expect(told).toEqual([["u", "secret-pw"]]);
});
