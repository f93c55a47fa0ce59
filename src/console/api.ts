// Central's API as the console asks it: by the session's cookie, with the header that no other site can send. What is refused rejects with a Refusal.

import type { Problem, ProblemError } from "../wire/customer/problem.ts";

const prefix = "/presentation-api/v1";

/** What central refused, and why; status 0 means that it could not be asked. */
export class Refusal extends Error {
  readonly status: number;
  readonly errors: readonly ProblemError[];

  constructor(status: number, message: string, errors: readonly ProblemError[] = []) {
    super(message);
    this.status = status;
    this.errors = errors;
  }
}

/** Returns a failure as a refusal: what is none of central's counts as not asked. */
export function refusalFrom(error: unknown): Refusal {
  return error instanceof Refusal ? error : new Refusal(0, String(error));
}

export type Paged<T> = {
  readonly value: T;
  /** Where the list goes on, for another `askPage`. */
  readonly next: string | undefined;
};

type Method = "GET" | "POST" | "PUT" | "DELETE";

/** Joins a path of the API; what is put in is encoded: at`/domain/${name}/`. */
export function at(texts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return String.raw({ raw: texts }, ...values.map((value) => encodeURIComponent(value)));
}

/** Adds a query to a path; what is undefined or empty is left out. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") asked.set(name, String(value));
  const text = asked.toString();
  return text === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${text}`;
}

export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await call<T>("GET", path, undefined, signal)).value;
}

export async function askPage<T>(path: string, signal?: AbortSignal): Promise<Paged<T>> {
  return call<T>("GET", path, undefined, signal);
}

/** Changes something. The answer to a DELETE is undefined. */
export async function send<T = undefined>(
  method: Exclude<Method, "GET">,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  return (await call<T>(method, path, body, signal)).value;
}

/** Begins a session with a token, or with name and password. */
export async function signIn(
  given: { readonly token: string } | { readonly username: string; readonly password: string },
): Promise<void> {
  const authorization =
    "token" in given
      ? `Token ${given.token}`
      : `Basic ${base64(`${given.username}:${given.password}`)}`;
  await call("POST", "/session/", {}, undefined, { authorization });
}

function base64(text: string): string {
  return btoa(String.fromCodePoint(...new TextEncoder().encode(text)));
}

/** Hears when central no longer knows the session. */
export const sessionEnd = new EventTarget();

async function call<T>(
  method: Method,
  path: string,
  body: unknown,
  signal: AbortSignal | undefined,
  credentials: Readonly<Record<string, string>> = {},
): Promise<Paged<T>> {
  const { response, text } = await reach(path, {
    method,
    headers: {
      ...(method !== "GET" && { "content-type": "application/json", "x-accel-console": "1" }),
      ...credentials,
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  });
  if (!response.ok) {
    if (response.status === 401 && path !== "/session/") sessionEnd.dispatchEvent(new Event("end"));
    throw refusalOf(response, text);
  }
  const value = (text === "" ? undefined : JSON.parse(text)) as T;
  return { value, next: nextOf(response.headers.get("link")) };
}

/** Why central could not be asked. */
export const notAnswering = "central does not answer";
export const notReached = "central cannot be reached; the network is down, or central is";

/** What only reads is answered at once; what changes something, or waits for proofs, may take longer. */
const [readWithinMs, doneWithinMs] = [20_000, 45_000];

/** When central last answered anything, in milliseconds since the epoch; 0: it never did. */
let answeredMs = 0;

export function lastAnsweredMs(): number {
  return answeredMs;
}

/** What a proxy says in central's place when that is away or late. */
const ofProxies: readonly number[] = [502, 503, 504];

type Reached = { readonly response: Response; readonly text: string };

async function reach(path: string, init: RequestInit): Promise<Reached> {
  const isRead = init.method === "GET" && !/[?&]wait=/.test(path);
  const late = AbortSignal.timeout(isRead ? readWithinMs : doneWithinMs);
  const signal = init.signal == null ? late : AbortSignal.any([init.signal, late]);
  try {
    const response = await fetch(path.startsWith(prefix) ? path : prefix + path, {
      ...init,
      signal,
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get("content-type") ?? "");
    if (ofProxies.includes(response.status) && !isJson) throw new Refusal(0, notReached);
    answeredMs = Date.now();
    return { response, text };
  } catch (error) {
    if (error instanceof Refusal) throw error;
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal(0, late.aborted ? notAnswering : notReached);
  }
}

function refusalOf({ status, statusText }: Response, text: string): Refusal {
  try {
    const { detail, errors } = JSON.parse(text) as Problem;
    return new Refusal(status, detail, errors ?? []);
  } catch {
    return new Refusal(status, `${status} ${statusText}`); // A proxy in between refused.
  }
}

function nextOf(link: string | null): string | undefined {
  return /<([^>]+)>;\s*rel="next"/.exec(link ?? "")?.[1];
}
