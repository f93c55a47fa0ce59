// One call of the customer API: JSON there and back, deadlines, refusals as ApiError. Answers are decoded by
// the schemas that central writes them with.

import { request, type Dispatcher, type FormData } from "undici";
import { openDispatcher } from "../base/proxy.ts";
import { AccelError, messageOf } from "../core/faults.ts";
import { problemShape, type Problem } from "../wire/customer/problem.ts";
import { customerApiPrefix, type Shape } from "../wire/customer/shape.ts";
import { describeErrors, type Decoder } from "../wire/validate.ts";
import { ApiError } from "./api-error.ts";

export type CallOptions = {
  /** The key of a POST: repeated with the same key, the request is done once and answered the same. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
};

export type Query = Readonly<Record<string, string | number | undefined>>;

export type Answered<T> = {
  readonly value: T;
  /** The path and query at which a list or a walk goes on. */
  readonly next: string | undefined;
  /** The entity tag of what is there, where central tells it. */
  readonly etag: string | undefined;
};

export type Transport = AsyncDisposable & {
  readonly call: <T>(
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    decode: Decoder<T>,
    given?: Given,
  ) => Promise<Answered<T>>;
  /** Returns the bytes of a file as they come. Rejects before the first of them if central refuses. */
  readonly download: (path: string, signal?: AbortSignal) => Promise<AsyncIterable<Uint8Array>>;
};

type Given = {
  readonly body?: unknown;
  /** The form that is sent in place of a JSON body. */
  readonly form?: FormData;
  /** The text that is sent in place of a JSON body. */
  readonly text?: string;
  /** The entity tag that what is changed must have. */
  readonly ifMatch?: string;
  readonly query?: Query;
  /** The name and password that are sent in place of the token. */
  readonly basic?: Credentials;
} & CallOptions;

export type Credentials = { readonly username: string; readonly password: string };

/** The calls that one subject makes. */
export type ApiCalls = Pick<Transport, "call" | "download">;

export type TransportOptions = {
  /** Central's address, without the API's prefix. */
  readonly baseUrl: string;
  readonly token: string | undefined;
  readonly timeoutMs: number;
};

export function openTransport({ baseUrl, token, timeoutMs }: TransportOptions): Transport {
  const dispatcher = openDispatcher(new URL(baseUrl), {
    connectTimeoutMs: timeoutMs,
    silenceMs: timeoutMs,
  });
  const origin = baseUrl.replace(/\/+$/, "");
  const urlOf = (path: string): string =>
    `${origin}${path.startsWith(customerApiPrefix) ? "" : customerApiPrefix}${path}`;
  return {
    call: async (method, path, decode, given = {}) => {
      const { body, form, text, query, basic, idempotencyKey, ifMatch, signal } = given;
      const name = `${method} ${path}`;
      const response = await send(name, urlOf(path) + search(query), {
        method,
        dispatcher,
        headers: {
          // For a form, undici writes it, with the boundary.
          ...(form === undefined && {
            "content-type": text === undefined ? "application/json" : "text/plain",
          }),
          ...(ifMatch !== undefined && { "if-match": ifMatch }),
          ...authorization(basic, token),
          ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
        },
        body: form ?? text ?? (body === undefined ? null : JSON.stringify(body)),
        signal: signal ?? null,
      });
      if (response.status >= 400) throw refusalOf(name, response);
      const decoded = decode(response.json);
      if (!decoded.ok)
        throw new AccelError(
          "MESSAGE_INVALID",
          `${name}: the answer is not understood: ${describeErrors(decoded.errors)}`,
        );
      const { link, etag } = response.headers;
      return {
        value: decoded.value,
        next: nextOf(link),
        etag: typeof etag === "string" ? etag : undefined,
      };
    },
    download: async (path, signal) => {
      const name = `GET ${path}`;
      const options = {
        dispatcher,
        headers: authorization(undefined, token),
        signal: signal ?? null,
      };
      const response = await ask(name, urlOf(path), options);
      if (response.statusCode >= 400) throw refusalOf(name, await receive(name, response));
      return response.body;
    },
    [Symbol.asyncDispose]: async () => dispatcher.destroy(),
  };
}

type Received = {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly json: unknown;
};

async function send(
  name: string,
  url: string,
  options: Parameters<typeof request>[1],
): Promise<Received> {
  return receive(name, await ask(name, url, options));
}

async function ask(
  name: string,
  url: string,
  options: Parameters<typeof request>[1],
): Promise<Dispatcher.ResponseData<unknown>> {
  try {
    return await request(url, options);
  } catch (error) {
    throw new AccelError("API_UNREACHABLE", `${name}: ${messageOf(error)}`, { cause: error });
  }
}

async function receive(
  name: string,
  { statusCode: status, headers, body }: Dispatcher.ResponseData<unknown>,
): Promise<Received> {
  let text: string;
  try {
    text = await body.text();
  } catch (error) {
    throw new AccelError("API_UNREACHABLE", `${name}: ${messageOf(error)}`, { cause: error });
  }
  try {
    const json: unknown = text === "" ? undefined : JSON.parse(text);
    return { status, headers, json };
  } catch {
    if (status >= 400) return { status, headers, json: undefined };
    throw new AccelError("MESSAGE_INVALID", `${name}: the answer is no JSON`);
  }
}

function authorization(
  basic: Credentials | undefined,
  token: string | undefined,
): { readonly authorization?: string } {
  if (basic !== undefined) {
    const pair = Buffer.from(`${basic.username}:${basic.password}`).toString("base64");
    return { authorization: `Basic ${pair}` };
  }
  return token === undefined ? {} : { authorization: `Token ${token}` };
}

/** Makes the error of a refusal. A proxy in between may refuse without a problem document. */
function refusalOf(name: string, { status, headers, json }: Received): ApiError {
  const decoded = problemShape.decode(json);
  const problem: Problem = decoded.ok
    ? decoded.value
    : { type: "about:blank", title: "Refused", status, detail: "without a problem document" };
  const after = Number(headers["retry-after"]);
  return new ApiError(name, problem, Number.isFinite(after) ? after * 1_000 : undefined);
}

function nextOf(link: string | string[] | undefined): string | undefined {
  return /<([^>]+)>;\s*rel="next"/.exec(String(link ?? ""))?.[1];
}

function search(query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`;
}

/** Decodes a plain array of what the shape describes. */
export function arrayOf<T>(shape: Shape<T>): Decoder<readonly T[]> {
  return (raw) => {
    if (!Array.isArray(raw)) return { ok: false, errors: [{ path: "", message: "is no list" }] };
    const values: T[] = [];
    for (const [at, item] of raw.entries()) {
      const decoded = shape.decode(item);
      if (!decoded.ok)
        return {
          ok: false,
          errors: decoded.errors.map(({ path, message }) => ({ path: `/${at}${path}`, message })),
        };
      values.push(decoded.value);
    }
    return { ok: true, value: values };
  };
}

/** Decodes answers without a body. */
export const nothing: Decoder<undefined> = () => ({ ok: true, value: undefined });
