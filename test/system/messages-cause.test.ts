// A mail is written with its cause: central is killed behind the answer to a request that a mail follows from, before and after the mail is in the outbox.
// Whenever it is, the store has either the cause or the message, never neither and never both, and the mail comes.

import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/base/sqlite.ts";
import { startCentralProgram } from "../support/central-program.ts";
import { call } from "../support/central-whole.ts";
import { startMailServer } from "../support/mail-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const shut = "nothing is written to the outbox";

test("killed between cause and mail", { timeout: 400_000 }, async () => {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir());
  const mails = stack.use(await startMailServer());
  const { url, program } = await startCentralProgram(dir.path, mails);
  const central = stack.use(program);
  const store = <T>(action: (db: ReturnType<typeof openSqlite>) => T): T => {
    const db = openSqlite(join(dir.path, "state", "central.db"), { sync: "full" });
    try {
      return action(db);
    } finally {
      db.close();
    }
  };
  /** What asks for a mail, links that were made for one, and messages that wait. */
  const found = () =>
    store((db) =>
      ["recovery_requests", "recoveries", "outbox WHERE state != 'sent'"].map((table) =>
        db.prepare(`SELECT count(*) FROM ${table}`).pluck().get(),
      ),
    );
  const user = { username: "ada", email: "ada@x.org" };
  await call(url, "POST", "/trial/", undefined, user);

  // Central gets as far as the message, which cannot be written.
  store((db) =>
    db.exec(
      `CREATE TRIGGER shut BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, '${shut}'); END`,
    ),
  );
  await call(url, "POST", "/tokens/start-recovery/", undefined, user);
  await until("central tried", () => central.said.includes(shut), 60_000);
  expect(found()).toEqual([1, 0, 0]);
  await central.kill();
  expect(found()).toEqual([1, 0, 0]);
  store((db) => db.exec("DROP TRIGGER shut"));

  // Now it is written; the mail server has it, and central does not know so yet.
  const taken = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  mails.afterData = async () => {
    taken.resolve();
    await released.promise;
  };
  await central.restart();
  await taken.promise;
  expect(found()).toEqual([0, 1, 1]);
  await central.kill();
  expect(found()).toEqual([0, 1, 1]);
  mails.afterData = undefined;
  released.resolve();

  await central.restart();
  await until("it is known to be sent", () => found()[2] === 0, 120_000);
  expect(found()).toEqual([0, 1, 0]);
  // One message, however often it was handed over.
  expect(new Set(mails.received.map(({ mail }) => mail.messageId)).size).toBe(1);
  const [mail] = mails.received;
  expect(mail?.to).toEqual([user.email]);
  const link = /http:\S+\/mail\/\S+/.exec(mail?.mail.text ?? "")?.[0] ?? "";
  expect((await fetch(link)).status).toBe(200);
});
