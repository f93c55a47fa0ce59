// Central is killed again and again while it sends mails and posts to a hook: nothing is lost, what comes twice has the same id, and no more than the kills.

import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/base/sqlite.ts";
import { createSealer, openKeyFile } from "../../src/base/seal.ts";
import { startChatHook } from "../support/chat-hook.ts";
import { startMailServer } from "../support/mail-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { startCentralProgram } from "../support/central-program.ts";
import { call } from "../support/central-whole.ts";
import { until } from "../support/until.ts";

const kills = 4;
const messagesEach = 30;
/** Before each kill: there are messages left for the last one. */
const passedEach = 3;

test("mail and chat under SIGKILL", { timeout: 600_000 }, async () => {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir());
  const mails = stack.use(await startMailServer());
  const hook = stack.use(await startChatHook());
  const more = "chat:\n  private_hooks: true";
  const { url, program } = await startCentralProgram(dir.path, mails, more);
  const central = stack.use(program);
  await call(url, "POST", "/trial/", undefined, { username: "ada", email: "ada@x.org" });

  const key = await openKeyFile(join(dir.path, "state", "central.key"));
  let held = { mail: new Hold(), chat: new Hold() };
  const arm = (): void => {
    held = { mail: new Hold(), chat: new Hold() };
    mails.afterData = held.mail.at;
    hook.afterPost = held.chat.at;
  };
  arm();
  putMessages(join(dir.path, "state", "central.db"), key, hook.url);

  // Killed between the peer's having a message of each lane and central's knowing so, which is the worst moment.
  for (let kill = 1; kill <= kills; kill++) {
    const { mail, chat } = held;
    await Promise.all([mail.taken, chat.taken]);
    await central.kill();
    mails.afterData = undefined;
    hook.afterPost = undefined;
    if (kill < kills) arm();
    for (const one of [mail, chat]) one.release();
    await central.restart();
  }
  const mailIds = () => mails.received.map(({ mail }) => mail.messageId ?? "");
  const chatIds = () => hook.posted.map(({ headers }) => String(headers["idempotency-key"]));
  await until("all mails", () => new Set(mailIds()).size === messagesEach, 180_000);
  await until("all posts", () => new Set(chatIds()).size === messagesEach, 180_000);
  const db = openSqlite(join(dir.path, "state", "central.db"), { sync: "full", readonly: true });
  const left = db.prepare("SELECT count(*) FROM outbox WHERE state != 'sent'").pluck();
  await until("all are known to be sent", () => left.get() === 0, 120_000);
  db.close();

  // The same id is the same message.
  const texts = new Map(mails.received.map(({ mail }) => [mail.messageId, mail.subject]));
  for (const { mail } of mails.received) expect(texts.get(mail.messageId)).toBe(mail.subject);
  const repeats = (ids: readonly string[]): number => ids.length - new Set(ids).size;
  const [mailRepeats, chatRepeats] = [repeats(mailIds()), repeats(chatIds())];
  // Each kill was in the middle of a message of each lane, which therefore came again.
  expect(mailRepeats).toBe(kills);
  expect(chatRepeats).toBe(kills);
});

/** Lets a few messages pass, then keeps the next one unanswered until it is released. */
class Hold {
  readonly #taken = Promise.withResolvers<void>();
  readonly #released = Promise.withResolvers<void>();
  #passed = 0;

  get taken(): Promise<void> {
    return this.#taken.promise;
  }

  readonly at = async (): Promise<void> => {
    if (this.#passed++ < passedEach) return;
    this.#taken.resolve();
    await this.#released.promise;
  };

  release(): void {
    this.#released.resolve();
  }
}

/** As central writes them, all at once. */
function putMessages(path: string, key: Uint8Array, hookUrl: string): void {
  const sealer = createSealer(key);
  const db = openSqlite(path, { sync: "full" });
  const insert = db.prepare(`
    INSERT INTO outbox (uid, customer_id, channel, kind, recipient, sealed, state, attempts, due_at, expires_at, when_created)
    VALUES (?, 1, ?, 'weekly_report_email', ?, ?, 'waiting', 0, ?, ?, ?)`);
  const now = new Date().toISOString();
  const end = new Date(Date.now() + 3_600_000).toISOString();
  db.transaction(() => {
    for (let i = 0; i < messagesEach; i++)
      for (const channel of ["mail", "chat"]) {
        const uid = `${channel}${i}`;
        const to = `n${i}@x.org`;
        const message =
          channel === "mail"
            ? { channel, to, subject: `mail ${i}`, text: "t", html: "h", unsubscribeUrl: null }
            : { channel, hookUrl, text: `post ${i}` };
        const sealed = sealer.seal(JSON.stringify(message), `outbox/${uid}`);
        insert.run(uid, channel, channel === "mail" ? to : `chat:${i}`, sealed, now, end, now);
      }
  })();
  db.close();
}
