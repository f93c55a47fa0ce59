// A real SMTP server on a port of its own: keeps what it accepted, refuses and delays as it is told.

import type { AddressInfo } from "node:net";
import PostalMime, { type Email } from "postal-mime";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { until } from "./until.ts";

export type ReceivedMail = {
  readonly to: readonly string[];
  readonly raw: string;
  readonly mail: Email;
};

export type MailServer = AsyncDisposable & {
  readonly port: number;
  readonly received: ReceivedMail[];
  /** What the next recipients are told, one after the other; undefined: accepted. */
  readonly recipientAnswers: (Error | undefined)[];
  /** What becomes of the next messages when they are there whole. */
  readonly dataAnswers: (Error | undefined)[];
  /** Awaited between taking a message and saying so. */
  afterData: (() => Promise<void>) | undefined;
  /** Mails by recipient; waits until there are so many. */
  waitFor(count: number, deadlineMs?: number): Promise<readonly ReceivedMail[]>;
  header(mail: ReceivedMail, name: string): string | undefined;
};

/** An answer of SMTP with this code. */
export function smtpError(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

export async function startMailServer(
  options: SMTPServerOptions = {},
  listenPort = 0,
): Promise<MailServer> {
  const received: ReceivedMail[] = [];
  const state: Pick<MailServer, "recipientAnswers" | "dataAnswers" | "afterData"> = {
    recipientAnswers: [],
    dataAnswers: [],
    afterData: undefined,
  };
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS", "AUTH"],
    authOptional: true,
    disableReverseLookup: true,
    onRcptTo: (_address, _session, callback) => callback(state.recipientAnswers.shift()),
    onData: (stream, session, callback) => {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const keep = async (): Promise<Error | undefined> => {
          const refusal = state.dataAnswers.shift();
          if (refusal !== undefined) return refusal;
          const raw = Buffer.concat(chunks).toString("utf8");
          const to = session.envelope.rcptTo.map(({ address }) => address);
          received.push({ to, raw, mail: await PostalMime.parse(raw) });
          await state.afterData?.();
          return undefined;
        };
        const answer = async (): Promise<void> => {
          const refusal = await keep().catch((error: unknown) => new Error(String(error)));
          callback(refusal);
        };
        void answer();
      });
    },
    ...options,
  });
  // Clients that are killed in the middle are part of the tests.
  server.on("error", () => {});
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(listenPort, "127.0.0.1", () => resolve());
  await promise;
  // Listening on TCP.
  const { port } = server.server.address() as AddressInfo;
  return Object.assign(state, {
    port,
    received,
    waitFor: async (count: number, deadlineMs?: number) =>
      until(`${count} mails`, () => (received.length >= count ? received : undefined), deadlineMs),
    header: ({ mail }: ReceivedMail, name: string) =>
      mail.headers.find(({ key }) => key === name.toLowerCase())?.value,
    [Symbol.asyncDispose]: async () => {
      const { promise: closed, resolve: done } = Promise.withResolvers<void>();
      server.close(() => done());
      await closed;
    },
  });
}
