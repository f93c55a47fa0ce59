// What directories of ACME are asked, and what they answer (RFC 8555): signed, with their nonces, and again where a nonce
// was not good.

import { createPrivateKey, type KeyObject } from "node:crypto";
import { problemText, type DirectoryProblem } from "../../core/acme/directory-problem.ts";
import type { LeftOut } from "../../core/acme/order-step.ts";
import {
  decodeAcmeAuthorization,
  decodeAcmeDirectory,
  decodeAcmeProblem,
  decodeDirectoryOrder,
  decodeRenewalInfo,
  type AcmeAuthorization,
  type AcmeDirectory,
  type AcmeProblem,
  type DirectoryOrder,
} from "../../wire/acme.ts";
import { describeErrors, type Decoder } from "../../wire/validate.ts";
import type { DirectoryHttp, HttpAnswered } from "./directory-http.ts";
import { signedBody } from "./jws.ts";

export type DirectoryReply<T> =
  | {
      readonly kind: "ok";
      readonly value: T;
      /** Of what was made by the request. */
      readonly location: string | undefined;
      readonly retryAfterMs: number | undefined;
    }
  | { readonly kind: "problem"; readonly problem: DirectoryProblem }
  | { readonly kind: "unreachable"; readonly reason: string };

/** Whoever signs. */
export type Signer = {
  readonly directory: string;
  readonly key: KeyObject;
  readonly accountUrl: string | undefined;
};

export function signerOf(directory: string, privateKey: string, accountUrl: string | null): Signer {
  return { directory, key: createPrivateKey(privateKey), accountUrl: accountUrl ?? undefined };
}

/** How often a request is sent with another nonce. A directory may forget its nonces at any time (RFC 8555 §6.5). */
const noncesTriedMax = 10;
const noncesKept = 16;
/** A directory's document is read anew after so long. */
const documentKeptMs = 3_600_000;
/** Directories are customers' texts: beyond so many the one that was read first is read anew when it is needed. */
const directoriesKept = 200;
/** A nonce that is kept; Let's Encrypt's have 48. */
const nonceCharsMax = 256;
const problemPrefix = "urn:ietf:params:acme:error:";
const ownCustomersOnly: AcmeProblem = {
  type: `${problemPrefix}externalAccountRequired`,
  detail: "its document has externalAccountRequired",
};

type Known = {
  readonly document: AcmeDirectory;
  readonly readMs: number;
  readonly nonces: string[];
};

export class AcmeDirectories {
  readonly #http: Pick<DirectoryHttp, "ask">;
  readonly #now: () => Date;
  readonly #known = new Map<string, Known>();

  constructor(http: Pick<DirectoryHttp, "ask">, now: () => Date) {
    this.#http = http;
    this.#now = now;
  }

  async document(url: string, signal: AbortSignal): Promise<DirectoryReply<AcmeDirectory>> {
    const known = await this.#knownOf(url, signal);
    return known.kind === "ok" ? { ...known, value: known.value.document } : known;
  }

  /** Makes the account of the key, or finds it: the reply's `location` is its URL. */
  async newAccount(
    signer: Signer,
    email: string,
    signal: AbortSignal,
  ): Promise<DirectoryReply<undefined>> {
    const known = await this.#knownOf(signer.directory, signal);
    if (known.kind !== "ok") return known;
    const { newAccount, meta } = known.value.document;
    if (meta?.externalAccountRequired === true)
      return { kind: "problem", problem: problemOf(403, ownCustomersOnly) };
    const payload = { termsOfServiceAgreed: true, contact: [`mailto:${email}`] };
    return read(await this.#post(signer, newAccount, payload, signal), () => undefined);
  }

  /** `replaces` is the name of the certificate that this one is instead of (RFC 9773 §5). */
  async newOrder(
    signer: Signer,
    {
      names,
      replaces,
    }: { readonly names: readonly string[]; readonly replaces: string | undefined },
    signal: AbortSignal,
  ): Promise<DirectoryReply<DirectoryOrder>> {
    const known = await this.#knownOf(signer.directory, signal);
    if (known.kind !== "ok") return known;
    const identifiers = names.map((value) => ({ type: "dns", value }));
    const { newOrder, renewalInfo } = known.value.document;
    const order = (more: object) =>
      this.#post(signer, newOrder, { identifiers, ...more }, signal).then((answered) =>
        decoded(answered, decodeDirectoryOrder),
      );
    if (replaces === undefined || renewalInfo === undefined) return order({});
    const reply = await order({ replaces });
    // One that was replaced already, or that the directory does not know, is ordered as any other.
    const isOfReplaced =
      reply.kind === "problem" &&
      (["alreadyReplaced", "malformed"].includes(reply.problem.type) ||
        reply.problem.status === 409);
    return isOfReplaced ? order({}) : reply;
  }

  async order(
    signer: Signer,
    url: string,
    signal: AbortSignal,
  ): Promise<DirectoryReply<DirectoryOrder>> {
    return decoded(await this.#post(signer, url, undefined, signal), decodeDirectoryOrder);
  }

  async authorization(
    signer: Signer,
    url: string,
    signal: AbortSignal,
  ): Promise<DirectoryReply<AcmeAuthorization>> {
    return decoded(await this.#post(signer, url, undefined, signal), decodeAcmeAuthorization);
  }

  /** Asks the directory to look at a challenge. */
  async look(signer: Signer, url: string, signal: AbortSignal): Promise<DirectoryReply<undefined>> {
    return read(await this.#post(signer, url, {}, signal), () => undefined);
  }

  async finalize(
    signer: Signer,
    url: string,
    request: Uint8Array,
    signal: AbortSignal,
  ): Promise<DirectoryReply<DirectoryOrder>> {
    const csr = Buffer.from(request).toString("base64url");
    return decoded(await this.#post(signer, url, { csr }, signal), decodeDirectoryOrder);
  }

  /** Returns the chain as PEM. */
  async certificate(
    signer: Signer,
    url: string,
    signal: AbortSignal,
  ): Promise<DirectoryReply<string>> {
    return read(await this.#post(signer, url, undefined, signal), (text) => text);
  }

  /** Asks for the window of renewal of a certificate, by its name. */
  async renewalWindow(
    renewalInfo: string,
    name: string,
    signal: AbortSignal,
  ): Promise<DirectoryReply<{ readonly start: string; readonly end: string }>> {
    const url = `${renewalInfo.replace(/\/$/, "")}/${name}`;
    const reply = decoded(await this.#http.ask({ method: "GET", url }, signal), decodeRenewalInfo);
    return reply.kind === "ok" ? { ...reply, value: reply.value.suggestedWindow } : reply;
  }

  async #knownOf(url: string, signal: AbortSignal): Promise<DirectoryReply<Known>> {
    const nowMs = this.#now().getTime();
    const known = this.#known.get(url);
    const found = { kind: "ok", location: undefined, retryAfterMs: undefined } as const;
    if (known !== undefined && nowMs - known.readMs < documentKeptMs)
      return { ...found, value: known };
    const asked = await this.#http.ask({ method: "GET", url }, signal);
    const reply = decoded(asked, decodeAcmeDirectory);
    if (reply.kind !== "ok") return reply;
    const value = { document: neededOf(reply.value), readMs: nowMs, nonces: known?.nonces ?? [] };
    this.#keep(url, value);
    return { ...found, value };
  }

  #keep(url: string, value: Known): void {
    this.#known.delete(url); // A map has its keys in the order in which they came.
    this.#known.set(url, value);
    const [first] = this.#known.keys();
    if (this.#known.size > directoriesKept && first !== undefined) this.#known.delete(first);
  }

  async #post(
    signer: Signer,
    url: string,
    payload: unknown,
    signal: AbortSignal,
  ): Promise<HttpAnswered> {
    const known = await this.#knownOf(signer.directory, signal);
    if (known.kind !== "ok") return asAnswer(known);
    const { nonces, document } = known.value;
    let answered: HttpAnswered = { kind: "unreachable", reason: "the directory gives no nonce" };
    for (let tried = 0; tried < noncesTriedMax; tried++) {
      const nonce = nonces.pop() ?? (await this.#newNonce(document, signal));
      if (typeof nonce !== "string") return nonce;
      const body = signedBody(signer.key, { url, nonce, accountUrl: signer.accountUrl }, payload);
      answered = await this.#http.ask({ method: "POST", url, body }, signal);
      if (answered.kind === "unreachable") return answered;
      const fresh = answered.headers["replay-nonce"];
      if (typeof fresh === "string" && fresh.length <= nonceCharsMax && nonces.length < noncesKept)
        nonces.push(fresh);
      if (answered.status < 400 || problemFrom(answered).type !== "badNonce") return answered;
    }
    return answered;
  }

  async #newNonce(
    { newNonce }: AcmeDirectory,
    signal: AbortSignal,
  ): Promise<string | HttpAnswered> {
    const answered = await this.#http.ask({ method: "HEAD", url: newNonce }, signal);
    if (answered.kind === "unreachable") return answered;
    const nonce = answered.headers["replay-nonce"];
    if (typeof nonce === "string") return nonce;
    return answered.status >= 400
      ? answered
      : { kind: "unreachable", reason: "the directory gives no nonce" };
  }
}

/** What is kept of a document, which may have a megabyte of other members. */
function neededOf({
  newNonce,
  newAccount,
  newOrder,
  renewalInfo,
  meta,
}: AcmeDirectory): AcmeDirectory {
  const { externalAccountRequired } = meta ?? {};
  return {
    newNonce,
    newAccount,
    newOrder,
    ...(renewalInfo !== undefined && { renewalInfo }),
    ...(externalAccountRequired !== undefined && { meta: { externalAccountRequired } }),
  };
}

/** A reply that is no document, as the answer to what was asked after it. */
function asAnswer(reply: Exclude<DirectoryReply<unknown>, { kind: "ok" }>): HttpAnswered {
  return reply.kind === "unreachable" ? reply : { kind: "unreachable", reason: reply.problem.text };
}

function read<T>(answered: HttpAnswered, parse: (body: string) => T): DirectoryReply<T> {
  if (answered.kind === "unreachable") return answered;
  const { status, headers, body, retryAfterMs } = answered;
  if (status >= 400) return { kind: "problem", problem: problemFrom(answered) };
  if (status >= 300)
    return {
      kind: "unreachable",
      reason: `the directory answers ${status}; redirects are not followed`,
    };
  const location = isHttps(headers.location) ? headers.location : undefined;
  return { kind: "ok", value: parse(body), location, retryAfterMs };
}

const isHttps = (url: string | undefined): boolean =>
  url !== undefined && /^https:\/\//i.test(url) && URL.canParse(url);

function decoded<T>(answered: HttpAnswered, decode: Decoder<T>): DirectoryReply<T> {
  const reply = read(answered, parseJson);
  if (reply.kind !== "ok") return reply;
  const value = decode(reply.value);
  if (value.ok) return { ...reply, value: value.value };
  const reason = `what the directory answers is not understood: ${describeErrors(value.errors).slice(0, 300)}`;
  return { kind: "unreachable", reason };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function problemFrom(answered: Extract<HttpAnswered, { kind: "answered" }>): DirectoryProblem {
  const { status, body, retryAfterMs } = answered;
  const value = decodeAcmeProblem(parseJson(body));
  const told = value.ok ? value.value : { detail: `it answers ${status}` };
  return problemOf(status, told, retryAfterMs);
}

const typeOf = ({ type = "" }: Pick<AcmeProblem, "type">): string =>
  type.startsWith(problemPrefix) ? type.slice(problemPrefix.length) : "";

/** Makes a problem of what a directory told: in an answer, or in an order or an authorization that failed. */
export function problemOf(
  status: number,
  told: AcmeProblem,
  retryAfterMs?: number,
): DirectoryProblem {
  const type = typeOf(told);
  const hosts: LeftOut = Object.fromEntries(
    (told.subproblems ?? []).flatMap((one) =>
      one.identifier === undefined
        ? []
        : [[one.identifier.value, problemText(typeOf(one), one.detail)] as const],
    ),
  );
  return { status, type, text: problemText(type, told.detail), hosts, retryAfterMs };
}
