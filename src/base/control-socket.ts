// Operator commands over a unix socket: JSON over HTTP, one route a command, reachable only by the user that runs the program (mode 0600).

import { once } from "node:events";
import { chmodSync, renameSync, rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "undici";
import {
  AccelError,
  codeOf,
  FAULTS,
  hintOf,
  messageOf,
  systemCode,
  type FaultCode,
} from "../core/faults.ts";
import { listenHttp, readBody } from "./http-listener.ts";

/**
 * Answers one command, at once or by a promise. It may throw an AccelError, whose code, message and hint
 * reach the operator. An async iterable is streamed as NDJSON.
 */
export type ControlHandler = (parameters: unknown, signal: AbortSignal) => unknown;
export type ControlRoutes = Readonly<Record<string, ControlHandler>>;
/**
 * A handler that also gets bytes of any length, which it reads as they come; the parameters stand in a
 * header.
 */
export type ControlUpload = (
  parameters: unknown,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
) => unknown;

const requestBytesMax = 1_048_576; // Room for 64 patterns of 4 KiB and more.
const parametersHeader = "accel-parameters";
/** A command of every program, by which callers learn that it answers. A release before knows it not, and says so: that is an answer, too. */
const presenceCommand = "ping";
/** A program that serves answers in less than a second. */
const presentWithinMs = 15_000;

export async function startControlSocket(
  path: string,
  routes: ControlRoutes,
  uploads: Readonly<Record<string, ControlUpload>> = {},
): Promise<AsyncDisposable> {
  keepSpareName(path); // A killed process left it; the state lock says that none is alive.
  const run = async (request: IncomingMessage, signal: AbortSignal): Promise<unknown> => {
    const name = (request.url ?? "/").slice(1);
    const upload = Object.hasOwn(uploads, name) ? uploads[name] : undefined;
    if (upload !== undefined) {
      const parameters = parse(
        Buffer.from(String(request.headers[parametersHeader] ?? ""), "base64url"),
      );
      // An iterator that ends early must not close the socket, over which the answer goes.
      return upload(parameters, request.iterator({ destroyOnReturn: false }), signal);
    }
    const handler = Object.hasOwn(routes, name) ? routes[name] : undefined;
    if (name === presenceCommand) return null;
    const read = await readBody(request, requestBytesMax);
    if (handler === undefined)
      throw new AccelError("USAGE", `unknown command ${request.url ?? ""}`);
    if (!read.ok) throw new AccelError("USAGE", `request ${read.reason}`);
    return handler(parse(read.body), signal);
  };
  const listener = await inSpareName(path, async () =>
    listenHttp(
      (request, response) => {
        const gone = new AbortController();
        response.once("close", () => gone.abort());
        const answer = async (): Promise<void> => {
          const result = await run(request, gone.signal);
          response.setHeader("content-type", "application/x-ndjson");
          if (isStream(result)) {
            for await (const item of result) {
              const taken = response.write(`${JSON.stringify(item)}\n`);
              if (!taken) await once(response, "drain", { signal: gone.signal });
              if (gone.signal.aborted) return;
            }
            response.end();
          } else response.end(`${JSON.stringify(result ?? null)}\n`);
        };
        answer().catch((error: unknown) => {
          if (response.headersSent) response.destroy();
          else {
            const [code, message, hint] = [codeOf(error), messageOf(error), hintOf(error)];
            response.writeHead(400).end(JSON.stringify({ code, message, hint }));
          }
        });
      },
      { path },
    ),
  );
  listener.server.requestTimeout = 0; // A list of any length takes as long as it takes.
  chmodSync(path, 0o600);
  return {
    [Symbol.asyncDispose]: async () => {
      keepSpareName(path); // Closing it would remove it.
      await listener[Symbol.asyncDispose]();
    },
  };
}

/** A socket that was closed keeps its file under this name. */
const spareOf = (path: string): string => `${path}.room`;

/**
 * A socket is a file to the disk. Where no more files can be made, it takes the place of the one before, which nobody else could take meanwhile.
 */
async function inSpareName<T>(path: string, listen: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await listen();
    } catch (error) {
      if (codeOf(error) !== "DISK_FAILED" || tries >= spareTriesMax) throw error;
      // Other threads of this process make files as well, and give them back.
      if (tries > 1) await sleep(spareAgainMs);
      rmSync(spareOf(path), { force: true });
    }
  }
}

const spareTriesMax = 40;
const spareAgainMs = 50;

function keepSpareName(path: string): void {
  try {
    renameSync(path, spareOf(path));
  } catch {
    // There is none.
  }
}

function parse(body: Buffer): unknown {
  if (body.length === 0) return {};
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new AccelError("USAGE", `the request is no JSON: ${messageOf(error)}`);
  }
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return value !== null && typeof value === "object" && Symbol.asyncIterator in value;
}

export type ControlCall = {
  readonly upload?: Readable;
  /** How long the program has to say that it is there, before the command is sent. */
  readonly presentWithinMs?: number;
};

/**
 * Yields the lines of the answer as they come: the work may take long, so the program is asked before whether it answers at all. Throws CONTROL_UNREACHABLE,
 * CONTROL_SILENT of a program that hangs, to which the command is not sent, or the fault that it answered with.
 */
export async function* callControl(
  path: string,
  command: string,
  parameters: unknown,
  signal: AbortSignal,
  { upload, presentWithinMs: withinMs = presentWithinMs }: ControlCall = {},
): AsyncGenerator {
  const client = new Client("http://control", {
    socketPath: path,
    headersTimeout: upload === undefined ? 120_000 : 0,
    bodyTimeout: 0,
  });
  try {
    await assertPresent(client, path, { stop: signal, withinMs });
    const { statusCode, body } = await client
      .request({ path: `/${command}`, method: "POST", ...content(parameters, upload), signal })
      .catch((error: unknown) => {
        throw controlFault(path, error);
      });
    if (statusCode !== 200) throw faultOf(await body.json());
    let rest = "";
    for await (const chunk of chunksOf(body.setEncoding("utf8"), path, signal)) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line);
    }
  } finally {
    await client.destroy();
  }
}

type Waiting = { readonly stop: AbortSignal; readonly withinMs: number };

/**
 * Returns the single answer of a command that takes moments; null where it says nothing. Throws as callControl does, and CONTROL_SILENT where no answer comes within
 * `withinMs`.
 */
export async function askControl(
  path: string,
  command: string,
  { stop, withinMs }: Waiting,
): Promise<unknown> {
  const late = AbortSignal.timeout(withinMs);
  try {
    const signal = AbortSignal.any([stop, late]);
    for await (const answer of callControl(path, command, {}, signal)) return answer;
    return null;
  } catch (error) {
    throw late.aborted && !stop.aborted ? silentFault(path, withinMs, error) : error;
  }
}

/**
 * Throws CONTROL_SILENT of a program that hangs: what it is told by a signal would be lost. One that does not run, or does not let this user ask, is another's
 * business.
 */
export async function refuseSilent(
  path: string,
  { stop, withinMs = presentWithinMs }: Pick<Waiting, "stop"> & Partial<Waiting>,
): Promise<void> {
  const client = new Client("http://control", { socketPath: path });
  try {
    await assertPresent(client, path, { stop, withinMs });
  } catch (error) {
    if (codeOf(error) === "CONTROL_SILENT") throw error;
  } finally {
    await client.destroy();
  }
}

async function assertPresent(
  client: Client,
  path: string,
  { stop, withinMs }: Waiting,
): Promise<void> {
  const late = AbortSignal.timeout(withinMs);
  try {
    const signal = AbortSignal.any([stop, late]);
    const { body } = await client.request({ path: `/${presenceCommand}`, method: "POST", signal });
    await body.dump();
  } catch (error) {
    throw late.aborted && !stop.aborted
      ? silentFault(path, withinMs, error)
      : controlFault(path, error);
  }
}

function silentFault(path: string, withinMs: number, cause: unknown): AccelError {
  return new AccelError(
    "CONTROL_SILENT",
    `the program is there: it accepts connections on ${path}, and has not answered for ${Math.round(withinMs / 1_000)} s: it hangs, or its host has no time for it`,
    { cause },
  );
}

/** Yields what comes. Throws CONTROL_UNREACHABLE where the program ends before its answer does. */
async function* chunksOf(
  body: Readable,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<string> {
  try {
    for await (const chunk of body) yield String(chunk);
  } catch (error) {
    if (signal.aborted) throw error;
    const text = `the program ended, or ended its answer, before all was said on ${path}: ${messageOf(error)}`;
    throw new AccelError("CONTROL_UNREACHABLE", text);
  }
}

/** Makes the fault of a socket that could not be reached: a user without the right to it learns nothing of who listens there. */
export function controlFault(path: string, error: unknown): AccelError {
  const text = `no answer on ${path}: ${messageOf(error)}`;
  if (!["EACCES", "EPERM"].includes(systemCode(error) ?? ""))
    return new AccelError("CONTROL_UNREACHABLE", text, { cause: error });
  return new AccelError("CONTROL_UNREACHABLE", text, {
    cause: error,
    hint: "This user may not use the socket: give the command as root, or as the user that runs the program.",
  });
}

function content(
  parameters: unknown,
  upload: Readable | undefined,
): { readonly body: string | Readable; readonly headers?: Record<string, string> } {
  const text = JSON.stringify(parameters);
  if (upload === undefined) return { body: text };
  return { body: upload, headers: { [parametersHeader]: Buffer.from(text).toString("base64url") } };
}

function faultOf(answer: unknown): AccelError {
  const { code, message, hint } = {
    code: "INTERNAL",
    message: "no message",
    ...(answer as { code?: string; message?: string; hint?: string }),
  };
  const known = Object.hasOwn(FAULTS, code) ? (code as FaultCode) : "INTERNAL";
  return new AccelError(known, message, hint === undefined ? {} : { hint });
}
