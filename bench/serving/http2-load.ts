// Visitors over HTTP/2: a few connections, each with many requests at once.

import { connect, type ClientHttp2Session } from "node:http2";
import { host } from "./cases.ts";
import type { Answered } from "./load.ts";

const sessionsOpen = 4;
const streamsAtOnce = 16;

export async function askByHttp2(
  port: number,
  path: (no: number) => string,
  seconds: number,
): Promise<Answered> {
  const began = performance.now();
  const untilMs = began + seconds * 1_000;
  let [no, done] = [0, 0];
  const sessions = Array.from({ length: sessionsOpen }, () =>
    connect(`https://127.0.0.1:${port}`, { servername: host, rejectUnauthorized: false }),
  );
  const lane = async (session: ClientHttp2Session): Promise<void> => {
    while (performance.now() < untilMs) {
      await ask(session, path(no++));
      done++;
    }
  };
  try {
    await Promise.all(
      sessions.flatMap((session) =>
        Array.from({ length: streamsAtOnce }, async () => lane(session)),
      ),
    );
  } finally {
    for (const session of sessions) session.destroy();
  }
  return { requests: done, seconds: (performance.now() - began) / 1_000 };
}

async function ask(session: ClientHttp2Session, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stream = session.request({
    ":path": path,
    ":authority": host,
    "user-agent":
      "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "accept-encoding": "gzip, deflate, br, zstd",
    "accept-language": "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7",
  });
  stream.once("response", ({ ":status": status }) => {
    if (status !== 200) reject(new Error(`HTTP/2: answered ${status}`));
  });
  stream.once("error", reject);
  stream.once("end", resolve);
  stream.resume();
  return promise;
}
