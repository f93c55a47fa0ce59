// The honest visitor beside a flood: so many requests a second on kept connections, and now and then a new connection with its handshake, each timed from when
// it was due.

import { Connection, askAtPace, type Target } from "../serving/load.ts";

export type Waited = {
  /** Milliseconds of each request on connections that were open before. */
  readonly kept: readonly number[];
  /** Milliseconds of each new connection with its handshake and its first answer. */
  readonly fresh: readonly number[];
  /** New connections that were not answered. */
  readonly failed: number;
};

const keptPerSecond = 200;
const keptConnections = 8;
const freshEveryMs = 50;

export async function visitFor(
  target: Target,
  secure: Target,
  request: string,
  seconds: number,
): Promise<Waited> {
  const fresh: number[] = [];
  const asking: Promise<void>[] = [];
  let failed = 0;
  const began = performance.now();
  let due = began;
  const timer = setInterval(() => {
    for (; due < performance.now(); due += freshEveryMs) {
      const dueMs = due;
      const asked = askFresh(secure, request).then(
        () => void fresh.push(performance.now() - dueMs),
        () => void failed++,
      );
      asking.push(asked);
    }
  }, 5);
  const kept = await askAtPace({
    target,
    requests: () => request,
    status: 200,
    connections: keptConnections,
    perSecond: keptPerSecond,
    seconds,
  }).finally(() => clearInterval(timer));
  await Promise.all(asking);
  return { kept, fresh, failed };
}

async function askFresh(target: Target, request: string): Promise<void> {
  const connection = await Connection.open(target, 200);
  try {
    await connection.ask(request);
  } finally {
    connection.close();
  }
}
