// Central whole in this process, on a port of its own: started, asked as a customer asks, stopped.

import { join } from "node:path";
import { callControl } from "../../src/base/control-socket.ts";
import { silentLog } from "../../src/base/log.ts";
import { readSettings } from "../../src/base/settings.ts";
import { runCentral } from "../../src/central/main.ts";
import { centralFields, type CentralSettings } from "../../src/central/settings/fields.ts";

export function settingsOf(stateDir: string, more = "", port = 0): CentralSettings {
  const read = readSettings(
    centralFields,
    `listen: 127.0.0.1:${port}\nstate_dir: ${stateDir}\n${more}`,
  );
  if (!read.ok) throw new Error(JSON.stringify(read.errors));
  return read.settings;
}

export async function start(settings: CentralSettings) {
  const stop = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const ended = runCentral(settings, {
    version: "0.0.0",
    stop: stop.signal,
    log: silentLog(),
    ready: ({ port }) => resolve(port),
  });
  ended.catch(reject);
  const url = `http://127.0.0.1:${await promise}`;
  return {
    url,
    agents: `${url}/agent-api/v1`,
    [Symbol.asyncDispose]: async () => {
      stop.abort("test");
      await ended;
    },
  };
}

/** A call of the customer API; its answer's body. */
export async function call(
  url: string,
  method: string,
  path: string,
  token?: string,
  body?: unknown,
) {
  const answer = await fetch(`${url}/presentation-api/v1${path}`, {
    method,
    headers: {
      "content-type": "application/json",
      ...(token !== undefined && { authorization: `Token ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Record<string, unknown>;
}

export async function newSite(url: string) {
  const token = String(
    (await call(url, "POST", "/trial/", undefined, { username: "alice" }))["token"],
  );
  const site = await call(url, "POST", "/deployment-site/", token, { tags: "" });
  return {
    token,
    id: Number(site["id"]),
    name16: String(site["name16"]),
    secret16: String(site["secret16"]),
  };
}

export async function statusOf(stateDir: string): Promise<unknown> {
  const signal = AbortSignal.timeout(60_000);
  for await (const answer of callControl(join(stateDir, "control.sock"), "status", {}, signal))
    return answer;
  throw new Error("no answer");
}
