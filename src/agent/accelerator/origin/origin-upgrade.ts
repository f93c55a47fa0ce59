// Asks an origin for another protocol (`Upgrade`), on a connection that belongs to this request alone: by a 101 it becomes the visitor's.

import { request as httpRequest, type IncomingMessage } from "node:http";
import { isIP, type Socket } from "node:net";
import type { StopSignal } from "../../../base/stop.ts";
import { fieldsOfRaw, fieldValue, type Field } from "../../../core/http/http-fields.ts";
import type { BackendSettings } from "../../../core/serving/effective-devlove.ts";
import type { WorkerClock } from "../clock.ts";
import { bodyOfStream, type OriginBody } from "./origin-body.ts";
import { originConnector, type OriginGuard } from "./origin-connector.ts";
import { originFailure, type OriginFailure } from "./origin-errors.ts";

export type UpgradeRequest = {
  readonly method: string;
  /** Path and query as sent. */
  readonly path: string;
  /** All fields, those of the connection included. */
  readonly fields: readonly Field[];
  readonly stop: StopSignal;
};

export type UpgradeOutcome =
  | {
      readonly kind: "switched";
      readonly fields: readonly Field[];
      /** Paused. */
      readonly socket: Socket;
      /** What it said behind its 101 already. */
      readonly early: Uint8Array;
    }
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly fields: readonly Field[];
      readonly body: OriginBody;
      readonly requestedAtMs: number;
      readonly receivedAtMs: number;
    }
  | { readonly kind: "failed"; readonly failure: OriginFailure };

/** Never throws. `request.stop` ends it until the outcome is there, and the body of an answer after it. */
export async function requestUpgrade(
  url: string,
  backend: BackendSettings,
  request: UpgradeRequest,
  guard: OriginGuard,
  clock: WorkerClock,
): Promise<UpgradeOutcome> {
  let socket: Socket | undefined;
  try {
    request.stop.throwIfAborted();
    socket = await connectTo(new URL(url), backend, request.fields, guard);
    return await exchange(socket, backend, request, clock);
  } catch (error) {
    socket?.destroy();
    socket?.destroy();
    return { kind: "failed", failure: originFailure(error) };
  }
}

async function connectTo(
  at: URL,
  backend: BackendSettings,
  fields: readonly Field[],
  guard: OriginGuard,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const connect = originConnector(at, Math.round(backend.connect_timeout_s * 1_000), guard);
  const named = (fieldValue(fields, "host") ?? at.hostname).replace(/:\d*$/, "");
  const options = {
    hostname: at.hostname.replace(/^\[(.*)\]$/, "$1"),
    host: at.host,
    protocol: at.protocol,
    port: at.port,
    // As undici's pools name the server: by the Host field.
    ...(at.protocol === "https:" && isIP(named) === 0 && { servername: named }),
  };
  connect(options, (...[error, socket]) => {
    if (error === null) resolve(socket);
    else reject(error);
  });
  return promise;
}

async function exchange(
  socket: Socket,
  backend: BackendSettings,
  { method, path, fields, stop }: UpgradeRequest,
  clock: WorkerClock,
): Promise<UpgradeOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<UpgradeOutcome>();
  const requestedAtMs = clock.ageMs();
  const asked = httpRequest({
    method,
    path,
    headers: fields.flat(),
    createConnection: () => socket, // Used only without an agent.
    setHost: false,
  });
  const timeoutMs = Math.round(backend.response_timeout_s * 1_000);
  const late = setTimeout(() => asked.destroy(new LateAnswer()), timeoutMs);
  const left = (): void => void asked.destroy(new Error("the visitor left"));
  stop.addEventListener("abort", left);
  const isOver = (): void => {
    clearTimeout(late);
    stop.removeEventListener("abort", left);
  };
  asked.once("close", isOver);
  asked.on("error", reject);
  asked.once("upgrade", (answer: IncomingMessage, upgraded: Socket, early: Buffer) => {
    isOver();
    upgraded.pause();
    const { rawHeaders } = answer;
    if (answer.statusCode === 101)
      resolve({ kind: "switched", fields: fieldsOfRaw(rawHeaders), socket: upgraded, early });
    else reject(new Error(`the origin upgraded with ${answer.statusCode}`));
  });
  asked.once("response", (body: IncomingMessage) => {
    clearTimeout(late);
    body.setTimeout(Math.round(backend.idle_timeout_s * 1_000), () => body.destroy());
    resolve({
      kind: "answered",
      status: body.statusCode ?? 0,
      fields: fieldsOfRaw(body.rawHeaders),
      body: bodyOfStream(body),
      requestedAtMs,
      receivedAtMs: clock.ageMs(),
    });
  });
  asked.end();
  return promise;
}

class LateAnswer extends Error {
  readonly code = "UND_ERR_HEADERS_TIMEOUT";
  constructor() {
    super("the origin did not answer in time");
  }
}
